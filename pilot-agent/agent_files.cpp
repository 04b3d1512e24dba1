// The driver's part of images that are files: which file a job names, and what image-store makes of it.

#include "lib/base/log.hpp"
#include "lib/base/text.hpp"
#include "lib/condor/image_forms.hpp"
#include "pilot-agent/agent.hpp"
#include "pilot-agent/core/words.hpp"
#include "pilot-agent/image_rules.hpp"

namespace glidepod::agent {
namespace {

// A job that ends between its test and its start leaves one.
constexpr std::size_t k_most_stored = 256;

}  // namespace

// Sets the request's image; where that is a file, opens it instead. An Error is the caller's fault.
Result<void> Agent::name_image(const wire::Bind& bind, Request& request) {
  ClientLink& link = clients_.at(request.client);
  request.named = bind.image;
  if (settings_.image_store.empty() || condor::image_form(bind.image) != condor::ImageForm::file) {
    request.image = TRY(pod_image(bind.image, rules_));
    return refuse_stored(request.image, settings_.image_store_repository);
  }
  const std::string file = condor::image_file_name(bind.image);
  // What the job starts in is what its test, a moment ago, was about.
  link.stored_as = fmt::format("{}\n{}\n{}\n{}", link.peer.uid, request.job, bind.work_directory, file);
  if (bind.verb != wire::Verb::test) {
    if (auto known = stored_.extract(link.stored_as)) {
      request.image = std::move(known.mapped());
      return {};
    }
  }
  link.image_file = TRY(
      open_image_file(settings_.scratch, bind.work_directory, file, link.peer.uid).in("image " + bind.image));
  return {};
}

// Hands the request to the core, once its image has a name.
void Agent::take_request(Request request) {
  ClientLink& link = clients_.at(request.client);
  if (link.image_file) return ask_store(request);
  link.launch->about =
      fmt::format("job={} owner={} image={}", word(request.job), word(request.owner), word(request.image));
  core_.on_bind(std::move(request), std::chrono::steady_clock::now());
}

void Agent::ask_store(const Request& request) {
  const ClientId client = request.client;
  ClientLink& link = clients_.at(client);
  const bool starts = request.verb != wire::Verb::test;
  auto question = question_of(
      request, std::move(link.image_file), [this, client, starts, request](const Result<std::string>& image) {
        const auto found = clients_.find(client);
        if (found == clients_.end()) return;
        const auto ended = std::move(found->second.store);  // the question, until this returns
        const auto good =
            image ? check_stored(*image, settings_.image_store_repository) : Result<void>(image.error());
        if (good)
          have_image(request, *image);
        else
          no_image(client, starts, request.named, good.error());
        pump();
      });
  if (question)
    link.store = std::move(*question);
  else
    no_image(client, starts, request.named, question.error());
}

Result<std::unique_ptr<StoreQuestion>> Agent::question_of(const Request& request, Fd file,
                                                          ImageQuestion::Handler handler) {
  const auto patience = std::chrono::ceil<Milliseconds>(settings_.policy.bind_deadline);
  if (!ImageUploads::is_url(settings_.image_store))
    return std::unique_ptr<StoreQuestion>(TRY(ImageQuestion::ask(
        loop_, {settings_.image_store, request.owner, patience}, file, std::move(handler))));
  if (!uploads_)
    uploads_ = TRY(ImageUploads::create(
        loop_, {settings_.image_store, settings_.image_store_token, settings_.image_store_ca, {}}));
  return uploads_->ask(std::move(file), request.owner, patience, std::move(handler));
}

void Agent::have_image(Request request, const std::string& image) {
  const ClientLink& link = clients_.at(request.client);
  if (request.verb == wire::Verb::test) {
    if (stored_.size() >= k_most_stored) stored_.clear();  // whoever starts then asks again
    stored_[link.stored_as] = image;
  }
  request.image = image;
  take_request(std::move(request));
}

void Agent::no_image(ClientId client, bool starts, const std::string& named, const Error& why) {
  const bool users = why.fact<ImageQuestion::UsersFault>() != nullptr;
  const std::string message = fmt::format("image {}: {}", named, why.message());
  spdlog::warn("event=no_image reason={}", quoted(message));
  run(Fail{client, starts, users ? wire::Fault::user : wire::Fault::infrastructure, message});
}

}  // namespace glidepod::agent
