#include "store/shelf.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "lib/base/child.hpp"
#include "lib/base/file.hpp"
#include "lib/base/json.hpp"
#include "lib/base/log.hpp"
#include "lib/base/text.hpp"
#include "store/digest.hpp"
#include "store/make.hpp"

namespace glidepod::store {
namespace {

constexpr std::chrono::minutes k_longest_command{30};
constexpr std::size_t k_most_tags = 10'000;
constexpr std::size_t k_longest_answer = std::size_t{1} << 20;
constexpr std::size_t k_longest_document = std::size_t{64} << 10;  // of those that we have made

Result<std::string> all_of(const Fd& file) {
  if (::lseek(file.get(), 0, SEEK_SET) != 0) return Error::system("rewind");
  return read_all(file, "what podman said", k_longest_answer);
}

// A document of a layout, as JSON.
Result<nlohmann::json> document(const std::string& path) {
  return json_from(TRY(read_file(path, k_longest_document)));
}

std::string blob_in(const std::string& layout, const std::string& digest) {
  return layout + "/blobs/sha256/" + digest.substr(digest.find(':') + 1);
}

// In a thread of its own, which the layer reaches by a socket.
class RegistryStream : public LayerStream {
 public:
  RegistryStream(std::unique_ptr<registry::Repository::Upload> upload, Fd to, Fd from, Milliseconds stall)
      : upload_(std::move(upload)), to_(std::move(to)), stall_(stall) {
    thread_ = std::thread([this, from = std::make_shared<const Fd>(std::move(from))]() mutable {
      sent_ = upload_->send(
          from, [this] { return given_up_ || std::chrono::steady_clock::now() > answer_due_.load(); });
      from.reset();  // add() waits no more
    });
  }
  ~RegistryStream() override { finish(true); }

  Result<void> add(std::string_view bytes) override {
    while (!bytes.empty() && !given_up_) {
      const auto sent = ::send(to_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
      if (sent >= 0 || errno == EINTR) continue;
      pollfd wait{to_.get(), POLLOUT, 0};
      given_up_ = errno != EAGAIN || ::poll(&wait, 1, static_cast<int>(stall_.count())) <= 0;
    }
    if (given_up_) return error("the registry takes no more of the layer");
    return {};
  }
  void end() override { no_more(); }
  Result<void> commit(const std::string& digest) override {
    const bool whole = !given_up_;
    finish(!whole);
    if (!whole) return sent_ ? error("the registry takes no more of the layer") : sent_;
    TRY(sent_);
    return upload_->commit(digest);
  }

 private:
  void no_more() {
    answer_due_ = std::chrono::steady_clock::now() + stall_;
    to_.reset();
  }
  void finish(bool give_up) {
    given_up_ = given_up_ || give_up;
    no_more();
    if (thread_.joinable()) thread_.join();
  }

  std::unique_ptr<registry::Repository::Upload> upload_;
  Fd to_;
  const Milliseconds stall_;
  std::atomic<bool> given_up_ = false;
  std::atomic<SteadyTime> answer_due_ = SteadyTime::max();
  Result<void> sent_;
  std::thread thread_;
};

}  // namespace

Result<PodmanShelf::Said> PodmanShelf::podman(const std::vector<std::string>& arguments,
                                              const std::string& folder) const {
  std::vector<std::string> argv = {"/usr/bin/env", "-C", folder};
  argv.insert(argv.end(), command_.begin(), command_.end());
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  const Fd out(::memfd_create("out", MFD_CLOEXEC)), err(::memfd_create("err", MFD_CLOEXEC));
  if (!out || !err) return Error::system("memfd_create");
  const Fd null = TRY(open_file("/dev/null", O_RDONLY));
  auto child = TRY(
      Child::spawn({.argv = argv, .stdin_fd = null.get(), .stdout_fd = out.get(), .stderr_fd = err.get()}));
  const auto ended = TRY(child.wait(k_longest_command));
  if (!ended)
    return error("{} {} took longer than {} minutes", command_[0], arguments[0], k_longest_command.count());
  if (ended->status.how == ExitStatus::How::signaled)
    return error("{} {} ended by {}", command_[0], arguments[0], ended->status.to_string());
  Said said{ended->status.number, {}, {}};
  said.out = TRY(all_of(out));
  said.err = TRY(all_of(err));
  return said;
}

Result<bool> PodmanShelf::has(const std::string& image) {
  const auto said = TRY(podman({"image", "exists", image}));
  if (said.code > 1) return error("podman image exists: {}", one_line(said.err));
  return said.code == 0;
}

Result<void> PodmanShelf::put(const std::string& layout, const std::string& tag) {
  // podman calls it by the folder's path, as it is given, which is no name to keep, and must have no
  // capitals.
  const auto slash = layout.rfind('/');
  const std::string name = layout.substr(slash + 1);
  const auto pulled = TRY(podman({"pull", "--quiet", "oci:" + name}, layout.substr(0, slash)));
  const std::string id(trim(pulled.out));
  if (pulled.code != 0 || id.empty()) return error("podman pull: {}", one_line(pulled.err));
  const auto tagged = TRY(podman({"tag", id, repository_ + ":" + tag}));
  if (tagged.code != 0) return error("podman tag: {}", one_line(tagged.err));
  const auto untagged = TRY(podman({"untag", id, "localhost/" + name}));
  if (untagged.code != 0)
    spdlog::warn("event=name_left image={} reason={}", id, quoted(one_line(untagged.err)));
  return {};
}

Result<void> PodmanShelf::remove(const std::string&, const std::string& tag) {
  // By its name: the content may have another one. What a container runs in stays until that has ended.
  const auto removed = TRY(podman({"rmi", repository_ + ":" + tag}));
  if (removed.code > 1) return error("podman rmi: {}", one_line(removed.err));
  return {};
}

Result<bool> RegistryShelf::has(const std::string& image) {
  const auto found = TRY(registry_->find(image.substr(image.find('@') + 1)).in("the registry"));
  return found.has_value();
}

Result<std::optional<std::string>> RegistryShelf::find(const std::string& tag) {
  const auto digest = TRY(registry_->find(tag).in("the registry"));
  if (!digest || !is_digest(*digest)) return std::optional<std::string>();
  return std::optional(repository_ + "@" + *digest);
}

std::unique_ptr<LayerStream> RegistryShelf::stream() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return nullptr;
  Fd to(ends[0]), from(ends[1]);
  auto upload = registry_->begin_upload();
  if (!upload) return nullptr;  // put() will tell why
  return std::make_unique<RegistryStream>(std::move(upload.value()), std::move(to), std::move(from),
                                          longest_stall_);
}

Result<void> RegistryShelf::put(const std::string& layout, const std::string& tag) {
  const auto index = TRY(document(layout + "/index.json"));
  const std::string digest = text_of(index["manifests"][0], "digest");
  const std::string text = TRY(read_file(blob_in(layout, digest), k_longest_document));
  const auto manifest = json_from(text);
  const auto put_blob = [&](const nlohmann::json& blob) -> Result<void> {
    const std::string its = text_of(blob, "digest");
    if (TRY(registry_->has_blob(its).in("the registry"))) return {};
    const auto file = std::make_shared<const Fd>(TRY(open_file(blob_in(layout, its), O_RDONLY)));
    struct stat info {};
    if (::fstat(file->get(), &info) != 0) return Error::system("stat {}", its);
    return registry_->put_blob(its, file, static_cast<std::uint64_t>(info.st_size)).in("the registry");
  };
  for (const auto& layer : member(manifest, "layers")) TRY(put_blob(layer));
  TRY(put_blob(member(manifest, "config")));
  return registry_->put_manifest(tag, k_manifest_type, text).in("the registry");
}

Result<std::vector<std::string>> RegistryShelf::tags() {
  return registry_->tags(k_most_tags).in("the registry");
}

Result<void> RegistryShelf::remove(const std::string& image, const std::string&) {
  static std::atomic<bool> told = false;
  if (!TRY(registry_->remove(image.substr(image.find('@') + 1)).in("the registry")) && !told.exchange(true))
    spdlog::warn(
        "event=not_removed reason=\"the registry of {} removes no images: what is forgotten here stays "
        "there\"",
        repository_);
  return {};
}

}  // namespace glidepod::store
