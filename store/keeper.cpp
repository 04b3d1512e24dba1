#include "store/keeper.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "lib/base/child.hpp"
#include "lib/base/file.hpp"
#include "lib/base/log.hpp"
#include "lib/base/text.hpp"
#include "store/digest.hpp"
#include "store/layout.hpp"
#include "store/limits.hpp"

namespace glidepod::store {
namespace {

constexpr std::chrono::minutes k_longest_command{30};
constexpr std::size_t k_longest_answer = std::size_t{1} << 20;
constexpr std::size_t k_copied_at_a_time = std::size_t{1} << 20;

Result<std::string> all_of(const Fd& file) {
  if (::lseek(file.get(), 0, SEEK_SET) != 0) return Error::system("rewind");
  return read_all(file, "what podman said", k_longest_answer);
}

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
  return Said{ended->status.number, TRY(all_of(out)), TRY(all_of(err))};
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

Result<void> Keeper::prepare() {
  std::error_code failed;
  for (const char* left : {"/spool", "/making"}) std::filesystem::remove_all(settings_.folder + left, failed);
  for (const char* part : {"", "/known", "/spool", "/making"}) {
    const std::string path = settings_.folder + part;
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return Error::system("make {}", path);
  }
  return {};
}

// The key is of the copy's own bytes: nobody else can reach the copy.
Result<Keeper::Copy> Keeper::copy(const Fd& file) const {
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return Error::system("stat the image file");
  if (!S_ISREG(info.st_mode)) return error("the image is no plain file").with(BadImage{});
  const auto most = Limits{}.content;
  Copy result{TRY(open_file(settings_.folder + "/spool", O_TMPFILE | O_RDWR, 0600)), {}};
  Digest digest;
  std::vector<char> buffer(k_copied_at_a_time);
  for (std::uint64_t done = 0;;) {
    const auto got = ::pread(file.get(), buffer.data(), buffer.size(), static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error::system("read the image file");
    if (got == 0) break;
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
    done += bytes.size();
    if (done > most) return error("the image file has more than {} MiB", most >> 20).with(BadImage{});
    digest.add(bytes);
    TRY(write_all(result.file, bytes).in("copy the image file"));
  }
  if (::lseek(result.file.get(), 0, SEEK_SET) != 0) return Error::system("rewind the copy");
  const std::string text = digest.text();
  result.key = text.substr(text.find(':') + 1);
  return result;
}

std::shared_ptr<std::mutex> Keeper::turn(const std::string& key) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(turns_, [](const auto& each) { return each.second.expired(); });
  auto& mine = turns_[key];
  auto result = mine.lock();
  if (!result) mine = result = std::make_shared<std::mutex>();
  return result;
}

Result<std::string> Keeper::image_of(const Fd& file) {
  const Copy copied = TRY(copy(file));
  const auto mine = turn(copied.key);
  const std::scoped_lock lock(*mine);
  if (const auto text = read_file(known(copied.key), 4096)) {
    std::string image(trim(text.value()));
    if (TRY(shelf_.has(image))) return image;
  }
  return make(copied);
}

Result<std::string> Keeper::make(const Copy& copy) {
  const std::string folder = settings_.folder + "/making/" + copy.key;
  std::error_code failed;
  std::filesystem::remove_all(folder, failed);
  auto result = [&]() -> Result<std::string> {
    Layout layout(folder, settings_.repository + ":" + copy.key);
    TRY(layout.prepare());
    const Made made = TRY(make_image(copy.file, layout, {.reader = settings_.reader}));
    TRY(layout.finish(made.manifest));
    TRY(shelf_.put(folder, copy.key));
    std::string image = settings_.repository + "@" + made.manifest.digest;
    TRY(replace_file(known(copy.key), image + "\n", 0600));
    spdlog::info("event=converted file=sha256:{} image={} content={} entries={} left_out={}", copy.key, image,
                 made.layer.content, made.layer.entries, made.layer.left_out);
    return image;
  }();
  std::filesystem::remove_all(folder, failed);
  return result;
}

}  // namespace glidepod::store
