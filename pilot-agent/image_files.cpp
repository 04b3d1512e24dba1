#include "pilot-agent/image_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "lib/base/beneath.hpp"
#include "lib/base/log.hpp"
#include "lib/base/text.hpp"
#include "lib/condor/image_forms.hpp"
#include "lib/kube/image_reference.hpp"
#include "pilot-agent/core/words.hpp"

namespace glidepod::agent {
namespace {

// A job that ends between its test and its start leaves one.
constexpr std::size_t k_most_kept = 256;

void keep(std::map<std::string, std::string>& known, const std::string& key, const std::string& image) {
  if (known.size() >= k_most_kept) known.clear();  // whoever looks for one then asks again
  known[key] = image;
}

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

Error of_artifact(const Error& why) {
  return registry::refused(why) ? why.with(ImageQuestion::UsersFault{}) : why;
}

// Whoever may read CVMFS may read all of it.
Result<ImageSource> cvmfs_source(const std::string& image) {
  Fd held = TRY(open_cvmfs_image("/cvmfs", image));
  struct stat info {};
  if (::fstat(held.get(), &info) != 0) return Error::system("look at it");
  ImageSource source{.rules = {.times = true}};
  if (S_ISDIR(info.st_mode))
    source.folder = std::move(held);
  else if (S_ISREG(info.st_mode))
    source.file = TRY(reopen(held, O_RDONLY));
  else
    return error("it is neither a file nor a folder");
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

Result<std::unique_ptr<ImageFiles>> ImageFiles::create(Loop& loop, const Settings& settings,
                                                       registry::Client& registry, Handler handler) {
  std::unique_ptr<ImageFiles> files(new ImageFiles(loop, settings, registry, std::move(handler)));
  files->rules_ = TRY(settings.rules());
  if (!settings.image_store.empty()) files->inbox_ = TRY(Inbox::create(loop));
  return files;
}

Result<std::string> ImageFiles::registry_image(const std::string& named) const {
  std::string image = TRY(pod_image(named, rules_));
  TRY(refuse_stored(image, settings_.image_store_repository));
  return image;
}

// A path that a rule covers stands for an image of a registry.
ImageFiles::Form ImageFiles::form_of(const std::string& named) const {
  const bool ruled =
      std::ranges::any_of(rules_, [&named](const ImageRule& rule) { return named.starts_with(rule.prefix); });
  const bool cvmfs = settings_.cvmfs_images && is_cvmfs_image(named, ruled);
  if (settings_.image_store.empty() || (ruled && !cvmfs)) return {condor::ImageForm::registry, cvmfs};
  return {cvmfs ? condor::ImageForm::folder : condor::image_form(named), cvmfs};
}

std::optional<Image> ImageFiles::image_of_registry(const std::string& named) const {
  if (form_of(named).form != condor::ImageForm::registry) return std::nullopt;
  auto image = registry_image(named);
  return image ? std::optional(Image(*std::move(image))) : std::nullopt;
}

Result<void> ImageFiles::name(const wire::Bind& bind, Request& request, wire::Launch& launch) {
  request.named = bind.image;
  const auto [form, cvmfs] = form_of(bind.image);
  if (form == condor::ImageForm::registry) {
    request.asked = Image(TRY(registry_image(bind.image)));
    return {};
  }
  const std::string name =
      cvmfs || form == condor::ImageForm::artifact ? bind.image : condor::image_file_name(bind.image);
  // Apptainer's own: what such an image runs by itself is in it, and in no registry's words.
  request.runscript = launch.runscript = bind.verb == wire::Verb::run;
  if (request.runscript) launch.argv.insert(launch.argv.begin(), "runscript");
  // What the job starts in is what its test, a moment ago, was about.
  std::string key = fmt::format("{}\n{}\n{}\n{}", request.uid, request.job, bind.work_directory, name);
  if (bind.verb != wire::Verb::test) {
    if (auto known = tested_.extract(key)) {
      request.asked = Image(std::move(known.mapped()));
      return {};
    }
  }
  auto source = cvmfs ? ImageSource{.cvmfs = bind.image} : source_of(form, bind, name, request.uid);
  if (!source && is_of_node(source.error())) return source.error().with(NodesFault{});
  ImageSource opened = TRY(std::move(source));
  auto& brought = brought_[request.client];
  brought.source = std::move(opened);
  brought.tested_as = std::move(key);
  return {};
}

Result<ImageSource> ImageFiles::source_of(condor::ImageForm form, const wire::Bind& bind,
                                          const std::string& name, uid_t user) const {
  ImageSource source{.rules = {.user = user}};
  if (form == condor::ImageForm::file)
    source.file =
        TRY(open_image_file(settings_.scratch, bind.work_directory, name, user).in("image " + bind.image));
  else if (form == condor::ImageForm::artifact)
    source.artifact = TRY(artifact_name(bind.image));
  else
    source.folder =
        TRY(open_image_folder(settings_.scratch, bind.work_directory, name, user).in("image " + bind.image));
  return source;
}

void ImageFiles::bring(const Request& request) {
  Brought& brought = brought_.at(request.client);
  brought.request = request;
  ImageSource& source = brought.source;
  if (!source.cvmfs.empty()) return open_cvmfs(request);
  if (!source.artifact.empty()) return find_artifact(request);
  if (source.file) return ask_store(request, std::move(source.file));
  copy(request, std::move(source));
}

std::vector<Request> ImageFiles::take(const std::function<bool(const Request&)>& which) {
  std::vector<Request> taken;
  for (const auto& [client, brought] : brought_)
    if (brought.request.client == client && which(brought.request)) taken.push_back(brought.request);
  for (const Request& request : taken) forget(request.client);
  return taken;
}

// A job may name what CVMFS does not have, or has on a server that does not answer.
void ImageFiles::open_cvmfs(const Request& request) {
  Brought& brought = brought_.at(request.client);
  const std::string image = brought.source.cvmfs;
  auto opening = Opening::begin(
      loop_, settings_.policy.pull_patience, [image] { return cvmfs_source(image); },
      [this, request](Result<ImageSource> source) {
        const auto ended = std::move(brought_.at(request.client).opening);
        if (!source) {
          const Error& why = source.error();
          return end(request, is_of_node(why) ? why : why.with(ImageQuestion::UsersFault{}));
        }
        if (source->file) return ask_store(request, std::move(source->file));
        copy(request, *std::move(source));
      });
  if (opening)
    brought.opening = *std::move(opening);
  else
    end(request, opening.error());
}

// A folder is copied first, so that the store gets a file, whose content does not change.
void ImageFiles::copy(const Request& request, ImageSource folder) {
  const auto from = std::make_shared<ImageSource>(std::move(folder));
  spooler_.run([this, request, from, spool = settings_.image_spool] {
    const auto copied = std::make_shared<Result<Fd>>(copy_folder(*from, spool));
    inbox_->post([this, request, copied] {
      if (!brings(request.client)) return;
      if (*copied)
        ask_store(request, std::move(**copied));
      else
        end(request, copied->error());
    });
  });
}

// A registry's word for what an artifact is does not do: whoever runs one could name somebody else's file by
// its digest. So each content is fetched once from each repository.
void ImageFiles::find_artifact(const Request& request) {
  Brought& brought = brought_.at(request.client);
  const auto deadline = Loop::now() + settings_.policy.pull_patience;
  brought.fetching = registry_.find_file(brought.source.artifact, deadline,
                                         [this, request](const Result<registry::Descriptor>& blob) {
                                           const auto ended = std::move(brought_.at(request.client).fetching);
                                           if (blob)
                                             fetch_artifact(request, *blob);
                                           else
                                             end(request, of_artifact(blob.error()));
                                         });
}

void ImageFiles::fetch_artifact(const Request& request, const registry::Descriptor& blob) {
  Brought& brought = brought_.at(request.client);
  const std::string& name = brought.source.artifact;
  brought.fetched_as = repository_of(name) + "@" + blob.digest;
  if (const auto known = fetched_.find(brought.fetched_as); known != fetched_.end())
    return end(request, known->second);
  if (blob.size > FolderRules{}.content)
    return end(
        request,
        error("it has more than {} MiB", FolderRules{}.content >> 20).with(ImageQuestion::UsersFault{}));
  auto spool = spool_file(settings_.image_spool);
  if (!spool) return end(request, spool.error());
  brought.spool = std::move(*spool);
  spdlog::info("event=fetch image={} size={} digest={}", word(name), blob.size, blob.digest);
  const auto deadline = Loop::now() + settings_.policy.bind_deadline;
  brought.fetching =
      registry_.fetch_file(name, blob, brought.spool, deadline, [this, request](const Result<void>& fetched) {
        Brought& mine = brought_.at(request.client);
        const auto ended = std::move(mine.fetching);
        if (fetched)
          ask_store(request, std::move(mine.spool));
        else
          end(request, of_artifact(fetched.error()));
      });
}

void ImageFiles::ask_store(const Request& request, Fd file) {
  auto question = question_of(request, std::move(file), [this, request](const Result<std::string>& image) {
    const auto good =
        image ? check_stored(*image, settings_.image_store_repository) : Result<void>(image.error());
    end(request, good ? image : Result<std::string>(good.error()));
  });
  if (question)
    brought_.at(request.client).question = std::move(*question);
  else
    end(request, question.error());
}

Result<std::unique_ptr<StoreQuestion>> ImageFiles::question_of(const Request& request, Fd file,
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

void ImageFiles::end(Request request, const Result<std::string>& image) {
  const auto brought = brought_.extract(request.client);  // what has just answered, until this returns
  if (!image) return handler_(std::move(request), image.error());
  const Brought& made = brought.mapped();
  if (!made.fetched_as.empty()) keep(fetched_, made.fetched_as, *image);
  if (request.verb == wire::Verb::test) keep(tested_, made.tested_as, *image);
  request.asked = Image(*image);
  handler_(std::move(request), {});
}

}  // namespace glidepod::agent
