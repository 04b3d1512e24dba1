// The driver's part of images that are files: which file a job names, and what image-store makes of it.

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "lib/base/beneath.hpp"
#include "lib/base/log.hpp"
#include "lib/base/text.hpp"
#include "lib/condor/image_forms.hpp"
#include "lib/kube/image_reference.hpp"
#include "pilot-agent/agent.hpp"
#include "pilot-agent/core/words.hpp"
#include "pilot-agent/image_rules.hpp"

namespace glidepod::agent {
namespace {

// A job that ends between its test and its start leaves one.
constexpr std::size_t k_most_stored = 256;

// As a pod would name it.
Result<std::string> artifact_name(const std::string& image) {
  const auto parsed = kube::ImageReference::parse(image.substr(image.find("://") + 3));
  if (!parsed) return error("image {}: {}", image, parsed.error().message());
  return parsed->full_name();
}

std::string repository_of(const std::string& name) {
  const auto parsed = kube::ImageReference::parse(name);
  return parsed ? parsed->full_repository() : name;
}

// Whoever may read CVMFS may read all of it.
Result<ImageSource> cvmfs_source(const std::string& image) {
  Fd held = TRY(open_cvmfs_image("/cvmfs", image).in("image " + image));
  struct stat info {};
  if (::fstat(held.get(), &info) != 0) return Error::system("image {}", image);
  ImageSource source{.rules = {.times = true}};
  if (S_ISDIR(info.st_mode))
    source.folder = std::move(held);
  else if (S_ISREG(info.st_mode))
    source.file = TRY(reopen(held, O_RDONLY));
  else
    return error("image {}: it is neither a file nor a folder", image);
  return source;
}

Result<Fd> copy_folder(const ImageSource& source, const std::string& spool) {
  Fd file = TRY(spool_file(spool));
  auto written = write_folder_tar(source.folder, source.rules, file);
  // An Error without a code is about the image itself.
  if (!written && written.error().code() == 0) return written.error().with(ImageQuestion::UsersFault{});
  TRY(written);
  return file;
}

}  // namespace

// Sets the request's image; where that is a file or a folder, opens it instead. An Error is the caller's
// fault.
Result<void> Agent::name_image(const wire::Bind& bind, Request& request) {
  ClientLink& link = clients_.at(request.client);
  request.named = bind.image;
  // A path that a rule covers stands for an image of a registry.
  const bool ruled = std::ranges::any_of(
      rules_, [&bind](const ImageRule& rule) { return bind.image.starts_with(rule.prefix); });
  const bool cvmfs = settings_.cvmfs_images && is_cvmfs_image(bind.image, ruled);
  const auto form = settings_.image_store.empty() || (ruled && !cvmfs) ? condor::ImageForm::registry
                    : cvmfs                                            ? condor::ImageForm::folder
                                                                       : condor::image_form(bind.image);
  if (form == condor::ImageForm::registry) {
    request.image = TRY(pod_image(bind.image, rules_));
    return refuse_stored(request.image, settings_.image_store_repository);
  }
  const std::string name =
      cvmfs || form == condor::ImageForm::artifact ? bind.image : condor::image_file_name(bind.image);
  // Apptainer's own: what such an image runs by itself is in it, and in no registry's words.
  request.runscript = link.launch->runscript = bind.verb == wire::Verb::run;
  if (request.runscript) link.launch->argv.insert(link.launch->argv.begin(), "runscript");
  // What the job starts in is what its test, a moment ago, was about.
  link.stored_as = fmt::format("{}\n{}\n{}\n{}", link.peer.uid, request.job, bind.work_directory, name);
  if (bind.verb != wire::Verb::test) {
    if (auto known = stored_.extract(link.stored_as)) {
      request.image = std::move(known.mapped());
      return {};
    }
  }
  ImageSource source{.rules = {.user = link.peer.uid}};
  if (cvmfs)
    source = TRY(cvmfs_source(bind.image));
  else if (form == condor::ImageForm::file)
    source.file = TRY(open_image_file(settings_.scratch, bind.work_directory, name, link.peer.uid)
                          .in("image " + bind.image));
  else if (form == condor::ImageForm::artifact)
    source.artifact = TRY(artifact_name(bind.image));
  else
    source.folder = TRY(open_image_folder(settings_.scratch, bind.work_directory, name, link.peer.uid)
                            .in("image " + bind.image));
  link.source = std::move(source);
  return {};
}

// Hands the request to the core, once its image has a name.
void Agent::take_request(Request request) {
  ClientLink& link = clients_.at(request.client);
  if (link.source) return bring(request);
  link.launch->about =
      fmt::format("job={} owner={} image={}", word(request.job), word(request.owner), word(request.image));
  core_.on_bind(std::move(request), std::chrono::steady_clock::now());
}

// A folder is copied first, so that the store gets a file, whose content does not change.
void Agent::bring(const Request& request) {
  const auto source = std::make_shared<ImageSource>(*std::exchange(clients_.at(request.client).source, {}));
  if (source->file) return ask_store(request, std::move(source->file));
  if (!source->artifact.empty()) return find_artifact(request, source->artifact);
  spooler_.run([this, request, source, spool = settings_.image_spool] {
    const auto copied = std::make_shared<Result<Fd>>(copy_folder(*source, spool));
    inbox_->post([this, request, copied] {
      if (!clients_.contains(request.client)) return;
      if (*copied)
        ask_store(request, std::move(**copied));
      else
        no_image(request.client, request.verb != wire::Verb::test, request.named, copied->error());
      pump();
    });
  });
}

// A registry's word for what an artifact is does not do: whoever runs one could name somebody else's file by
// its digest. So each content is fetched once from each repository.
void Agent::find_artifact(const Request& request, const std::string& name) {
  const auto deadline = std::chrono::steady_clock::now() + settings_.policy.pull_patience;
  questions_[request.client] =
      registry_.find_file(name, deadline, [this, request, name](const Result<registry::Descriptor>& blob) {
        const auto ended = std::move(questions_[request.client]);
        questions_.erase(request.client);
        if (blob)
          fetch_artifact(request, name, *blob);
        else
          no_artifact(request, blob.error());
        pump();
      });
}

void Agent::fetch_artifact(const Request& request, const std::string& name,
                           const registry::Descriptor& blob) {
  ClientLink& link = clients_.at(request.client);
  link.fetched_as = repository_of(name) + "@" + blob.digest;
  if (const auto known = fetched_.find(link.fetched_as); known != fetched_.end())
    return have_image(request, known->second);
  if (blob.size > FolderRules{}.content)
    return no_artifact(
        request,
        error("it has more than {} MiB", FolderRules{}.content >> 20).with(registry::Unknown::refused));
  auto spool = spool_file(settings_.image_spool);
  if (!spool) return no_artifact(request, spool.error());
  link.spool = std::move(*spool);
  spdlog::info("event=fetch image={} size={} digest={}", word(name), blob.size, blob.digest);
  const auto deadline = std::chrono::steady_clock::now() + settings_.policy.bind_deadline;
  questions_[request.client] =
      registry_.fetch_file(name, blob, link.spool, deadline, [this, request](const Result<void>& fetched) {
        const auto ended = std::move(questions_[request.client]);
        questions_.erase(request.client);
        Fd file = std::move(clients_.at(request.client).spool);
        if (fetched)
          ask_store(request, std::move(file));
        else
          no_artifact(request, fetched.error());
        pump();
      });
}

void Agent::no_artifact(const Request& request, const Error& why) {
  const bool users = registry::refused(why);
  no_image(request.client, request.verb != wire::Verb::test, request.named,
           users ? why.with(ImageQuestion::UsersFault{}) : why);
}

void Agent::ask_store(const Request& request, Fd file) {
  const ClientId client = request.client;
  ClientLink& link = clients_.at(client);
  const bool starts = request.verb != wire::Verb::test;
  auto question = question_of(
      request, std::move(file), [this, client, starts, request](const Result<std::string>& image) {
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
  if (!link.fetched_as.empty()) {
    if (fetched_.size() >= k_most_stored) fetched_.clear();
    fetched_[link.fetched_as] = image;
  }
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
