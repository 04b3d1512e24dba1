#include "store/keeper.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>

#include "lib/base/file.hpp"
#include "lib/base/log.hpp"
#include "lib/base/text.hpp"
#include "store/digest.hpp"
#include "store/layout.hpp"
#include "store/limits.hpp"

namespace glidepod::store {
namespace {

constexpr std::size_t k_copied_at_a_time = std::size_t{1} << 20;

// Sends a file's bytes, from its beginning to its end.
Result<void> send_file(const Fd& file, const Sink& sink) {
  std::vector<char> buffer(k_copied_at_a_time);
  for (std::uint64_t done = 0;;) {
    const auto got = ::pread(file.get(), buffer.data(), buffer.size(), static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error::system("read the image file");
    if (got == 0) return {};
    TRY(sink(std::string_view(buffer.data(), static_cast<std::size_t>(got))));
    done += static_cast<std::uint64_t>(got);
  }
}

}  // namespace

// One of the few who receive or convert; the others wait.
class Keeper::Slot {
 public:
  explicit Slot(Keeper& keeper) : keeper_(keeper) {
    std::unique_lock lock(keeper_.mutex_);
    keeper_.news_.wait(lock, [&] { return keeper_.taken_ < keeper_.settings_.at_a_time; });
    ++keeper_.taken_;
  }
  ~Slot() {
    const std::scoped_lock lock(keeper_.mutex_);
    --keeper_.taken_;
    keeper_.news_.notify_one();
  }
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

 private:
  Keeper& keeper_;
};

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
Result<Keeper::Copy> Keeper::copy(const Content& content) const {
  const auto most = Limits{}.content;
  Copy result{TRY(open_file(settings_.folder + "/spool", O_TMPFILE | O_RDWR, 0600)), {}};
  Digest digest;
  std::uint64_t done = 0;
  TRY(content.send([&](std::string_view bytes) -> Result<void> {
    done += bytes.size();
    if (done > most) return error("the image file has more than {} MiB", most >> 20).with(BadImage{});
    digest.add(bytes);
    auto written = write_all(result.file, bytes).in("copy the image file");
    if (!written && (written.error().code() == ENOSPC || written.error().code() == EDQUOT))
      return written.error().with(NoRoom{});
    return written;
  }));
  if (::lseek(result.file.get(), 0, SEEK_SET) != 0) return Error::system("rewind the copy");
  const std::string text = digest.text();
  result.key = text.substr(text.find(':') + 1);
  return result;
}

// A conversion needs the file's copy and the layer, which is about as long.
Result<void> Keeper::check_room(std::uint64_t size) const {
  struct statvfs disk {};
  if (::statvfs(settings_.folder.c_str(), &disk) != 0) return Error::system("look at {}", settings_.folder);
  const auto free = static_cast<std::uint64_t>(disk.f_bavail) * disk.f_frsize;
  if (free >= settings_.free && (free - settings_.free) / 2 >= size) return {};
  return error("no room for a file of {} MiB: {} has {} MiB free, of which {} MiB are to stay so", size >> 20,
               settings_.folder, free >> 20, settings_.free >> 20)
      .with(NoRoom{});
}

std::shared_ptr<std::mutex> Keeper::turn(const std::string& key) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(turns_, [](const auto& each) { return each.second.expired(); });
  auto& mine = turns_[key];
  auto result = mine.lock();
  if (!result) mine = result = std::make_shared<std::mutex>();
  return result;
}

// What it knows itself, or what the shelf knows of an earlier one that knew it.
Result<std::optional<std::string>> Keeper::look_up(const std::string& key) {
  if (const auto text = read_file(known(key), 4096)) {
    std::string image(trim(text.value()));
    if (TRY(shelf_.has(image))) return std::optional(std::move(image));
  }
  auto found = TRY(shelf_.find(key));
  if (found) TRY(replace_file(known(key), *found + "\n", 0600));
  return found;
}

Result<std::optional<std::string>> Keeper::find(const std::string& key) {
  const auto mine = turn(key);
  const std::scoped_lock lock(*mine);
  return look_up(key);
}

Result<std::string> Keeper::image_of(const Fd& file, const std::string& owner) {
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return Error::system("stat the image file");
  if (!S_ISREG(info.st_mode)) return error("the image is no plain file").with(BadImage{});
  const auto size = static_cast<std::uint64_t>(info.st_size);
  TRY(check_room(size));
  const Copy copied = TRY(copy({owner, size, [&file](const Sink& sink) { return send_file(file, sink); }}));
  const auto mine = turn(copied.key);
  const std::scoped_lock lock(*mine);
  if (auto image = TRY(look_up(copied.key))) return std::move(*image);
  const Slot slot(*this);
  return make(copied);
}

Result<std::string> Keeper::image_of(const std::string& key, const Content& content) {
  const auto mine = turn(key);
  const std::scoped_lock lock(*mine);
  if (auto image = TRY(look_up(key))) return std::move(*image);
  const Slot slot(*this);
  TRY(check_room(content.size));
  const Copy copied = TRY(copy(content));
  if (copied.key != key)
    return error("the file's SHA-256 is {}, not {}: it changed while it was read", copied.key, key)
        .with(Forged{});
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
