#include "pilot-agent/image_store.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "lib/base/beneath.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text.hpp"
#include "lib/kube/image_reference.hpp"
#include "lib/wire/socket.hpp"
#include "pilot-agent/bind_plan.hpp"

namespace glidepod::agent {
namespace {

constexpr std::string_view k_cvmfs = "/cvmfs/";
constexpr int k_most_links = 8;

// What HTCondor has put into the job's folder by this name.
Result<Fd> open_in_sandbox(const std::string& scratch, const std::string& sandbox, const std::string& name,
                           int flags) {
  if (sandbox.empty() || !inside(sandbox, scratch)) return error("the job has no folder to look for it in");
  const Fd root = TRY(open_file(scratch, O_PATH | O_DIRECTORY));
  const Fd folder = open_beneath(root, "." + sandbox.substr(scratch.size()), O_PATH | O_DIRECTORY);
  if (!folder) return Error::system("open the job's folder");
  Fd found = open_beneath(folder, name, flags);
  if (!found) return Error::system("open {} in the job's folder", name);
  return found;
}

}  // namespace

Result<Fd> open_image_file(const std::string& scratch, const std::string& sandbox, const std::string& name,
                           uid_t user) {
  // Opening a pipe must not wait for its other end.
  Fd file = TRY(open_in_sandbox(scratch, sandbox, name, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return Error::system("stat {}", name);
  if (!S_ISREG(info.st_mode)) return error("{} in the job's folder is no plain file", name);
  if (info.st_uid != user) return error("{} in the job's folder belongs to user {}", name, info.st_uid);
  return file;
}

Result<Fd> open_image_folder(const std::string& scratch, const std::string& sandbox, const std::string& name,
                             uid_t user) {
  Fd folder = TRY(open_in_sandbox(scratch, sandbox, name, O_PATH | O_NOFOLLOW));
  struct stat info {};
  if (::fstat(folder.get(), &info) != 0) return Error::system("stat {}", name);
  if (!S_ISDIR(info.st_mode)) return error("{} in the job's folder is no folder", name);
  if (info.st_uid != user) return error("{} in the job's folder belongs to user {}", name, info.st_uid);
  return folder;
}

bool is_cvmfs_image(std::string_view image, bool ruled) {
  while (image.ends_with('/')) image.remove_suffix(1);
  return image.starts_with(k_cvmfs) &&
         (!ruled || image.find("/.images/") != std::string_view::npos || image.ends_with(".sif"));
}

Result<Fd> open_cvmfs_image(const std::string& cvmfs, std::string_view image) {
  const auto root = open_file(cvmfs, O_PATH | O_DIRECTORY);
  if (!root) return Error(fmt::format("this pilot has no {}", cvmfs), ENODEV);
  std::string path(image);
  for (int links = 0; links < k_most_links; ++links) {
    path.erase(0, k_cvmfs.size());
    while (path.ends_with('/')) path.pop_back();
    const auto slash = path.find('/');
    if (slash == std::string::npos || slash == 0) break;
    // Each repository is a mount of its own.
    const Fd repository = open_beneath(*root, path.substr(0, slash), O_PATH | O_DIRECTORY, Through::mounts);
    if (!repository) return Error::system("open {} in CVMFS", path.substr(0, slash));
    const auto last = path.rfind('/');
    const Fd folder = last == slash ? TRY(reopen(repository, O_PATH | O_DIRECTORY))
                                    : open_beneath(repository, path.substr(slash + 1, last - slash - 1),
                                                   O_PATH | O_DIRECTORY, Through::links);
    if (!folder) return Error::system("open {} in CVMFS", path);
    auto target = link_at(folder, path.substr(last + 1));
    if (!target.starts_with(k_cvmfs)) {
      Fd found = open_beneath(repository, path.substr(slash + 1), O_PATH, Through::links);
      return found ? Result<Fd>(std::move(found)) : Error::system("open {} in CVMFS", path);
    }
    path = std::move(target);  // as singularity.opensciencegrid.org has them
  }
  return error("it leads to nothing in CVMFS");
}

bool is_of_node(const Error& why) {
  static constexpr std::array k_codes = {EIO,       ENOTCONN, ESTALE, ENODEV, ETIMEDOUT,
                                         EHOSTDOWN, EMFILE,   ENFILE, ENOMEM};
  return std::ranges::find(k_codes, why.code()) != k_codes.end();
}

Result<Fd> spool_file(const std::string& folder) {
  return open_file(folder, O_TMPFILE | O_RDWR, 0600).in("room for an image");
}

Result<void> refuse_stored(const std::string& image, const std::string& repository) {
  const auto parsed = kube::ImageReference::parse(image);
  const auto stored = kube::ImageReference::parse(repository);
  if (!parsed || !stored || parsed->full_repository() != stored->full_repository()) return {};
  return error(
      "image {}: it was made of somebody's image file; name the file itself (container_image = app.sif)",
      image);
}

Result<void> check_stored(const std::string& image, const std::string& repository) {
  const auto parsed = kube::ImageReference::parse(image);
  const auto stored = kube::ImageReference::parse(repository);
  if (parsed && stored && parsed->full_repository() == stored->full_repository() && !parsed->digest.empty())
    return {};
  return error("the image store answers with {}, and not with a digest in image_store_repository, {}",
               one_line(image, 200), repository);
}

Result<std::unique_ptr<ImageQuestion>> ImageQuestion::ask(Loop& loop, const Asked& asked, const Fd& file,
                                                          Handler handler) {
  std::unique_ptr<ImageQuestion> question(new ImageQuestion(loop, std::move(handler)));
  auto* self = question.get();
  Fd socket = TRY(wire::connect_to(asked.socket, SOCK_NONBLOCK).in("the image store"));
  question->channel_ = TRY(wire::Channel::create(
      loop, std::move(socket),
      {[self](const wire::Frame& frame) { self->take(frame); },
       [self](const Error&) { self->end(error("the image store has ended without an answer")); }}));
  question->timer_ =
      loop.after(asked.patience, [self] { self->end(error("the image store does not answer")); });
  TRY(question->channel_->send(wire::StoreImage{.owner = asked.owner}, {file.get()}).in("the image store"));
  return question;
}

void ImageQuestion::take(const wire::Frame& frame) {
  if (frame.type == wire::Type::image_stored) {
    const auto stored = frame.decode<wire::ImageStored>();
    return end(stored ? Result<std::string>(stored->image) : Result<std::string>(stored.error()));
  }
  const auto failed = frame.decode<wire::Failed>();
  if (frame.type != wire::Type::failed || !failed)
    return end(error("the image store's answer cannot be understood"));
  const Error why(one_line(failed->message));
  end(failed->fault == wire::Fault::user ? why.with(UsersFault{}) : why.in("the image store"));
}

void ImageQuestion::end(const Result<std::string>& image) {
  if (const auto handler = std::exchange(handler_, {})) handler(image);  // this may be gone from here on
}

}  // namespace glidepod::agent
