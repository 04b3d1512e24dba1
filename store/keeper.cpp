#include "store/keeper.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "lib/base/file.hpp"
#include "lib/base/log.hpp"
#include "lib/base/text.hpp"
#include "store/digest.hpp"
#include "store/layout.hpp"
#include "store/limits.hpp"

namespace glidepod::store {
namespace {

constexpr std::size_t k_copied_at_a_time = std::size_t{1} << 20;
constexpr std::size_t k_longest_known = 4096;

// How long ago anybody asked.
std::chrono::seconds age_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return std::chrono::seconds(0);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now) - std::chrono::seconds(info.st_mtim.tv_sec);
}

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

// What one owner takes: what is brought now counts with what was brought before.
class Keeper::Share {
 public:
  Share(Keeper& keeper, std::string owner) : keeper_(keeper), owner_(std::move(owner)) {}
  ~Share() {
    const std::scoped_lock lock(keeper_.mutex_);
    give_back();
  }
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;

  // Takes so much, in place of what it had before.
  Result<void> take(std::uint64_t bytes) {
    const std::scoped_lock lock(keeper_.mutex_);
    give_back();
    const auto quota = keeper_.settings_.quota;
    const auto used = keeper_.used_[owner_];
    if (quota > 0 && (bytes > quota || used > quota - bytes))
      return error(
                 "{} MiB more are beyond the quota: the image store has {} MiB of images of {}, of at most "
                 "{}; use an "
                 "image that it has, name one in a registry, or ask the operator",
                 bytes >> 20, used >> 20, owner_.empty() ? "nobody" : owner_, quota >> 20)
          .with(BadImage{});
    keeper_.used_[owner_] += taken_ = bytes;
    return {};
  }
  // It is kept.
  Known keep(std::string image) { return {std::move(image), owner_, std::exchange(taken_, 0)}; }

 private:
  void give_back() {
    const auto mine = keeper_.used_.find(owner_);
    if (mine != keeper_.used_.end() && (mine->second -= std::exchange(taken_, 0)) == 0)
      keeper_.used_.erase(mine);
  }
  Keeper& keeper_;
  std::string owner_;
  std::uint64_t taken_ = 0;
};

// A layout whose layers must be within their owner's quota. With streams they go there, and not to the disk;
// nothing is committed there before all of it is known to be good.
class Keeper::Bound : public Blobs {
 public:
  // shelf: whose streams to take. first: the first one; nullptr: none.
  Bound(Layout& layout, Shelf& shelf, std::unique_ptr<LayerStream> first, Share& share)
      : layout_(layout), shelf_(shelf), next_(std::move(first)), streams_(next_ != nullptr), share_(share) {}
  Result<void> layer(std::string_view bytes) override {
    if (!streams_) return layout_.layer(bytes);
    if (!next_) next_ = shelf_.stream();
    return of_stream(next_ ? next_->add(bytes) : error("the registry takes no more layers"));
  }
  Result<void> layer_ended(const Blob& layer) override {
    size_ += layer.size;
    if (!streams_) return layout_.layer_ended(layer);
    next_->end();
    ended_.emplace_back(std::move(next_), layer.digest);
    return {};
  }
  Result<void> layers_ended(std::uint64_t unpacked) override {
    TRY(share_.take(shelf_.unpacks() ? unpacked : size_));
    for (const auto& [stream, digest] : ended_) TRY(of_stream(stream->commit(digest)));
    return {};
  }
  Result<void> put(const Blob& blob, std::string_view bytes) override { return layout_.put(blob, bytes); }
  bool stream_failed() const { return stream_failed_; }

 private:
  Result<void> of_stream(Result<void> result) {
    stream_failed_ = !result;
    return result;
  }
  Layout& layout_;
  Shelf& shelf_;
  std::unique_ptr<LayerStream> next_;
  std::vector<std::pair<std::unique_ptr<LayerStream>, std::string>> ended_;  // each with its digest
  const bool streams_;
  Share& share_;
  std::uint64_t size_ = 0;  // of all layers
  bool stream_failed_ = false;
};

Result<void> Keeper::prepare() {
  std::error_code failed;
  for (const char* left : {"/spool", "/making"}) std::filesystem::remove_all(settings_.folder + left, failed);
  for (const char* part : {"", "/known", "/spool", "/making"}) {
    const std::string path = settings_.folder + part;
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return Error::system("make {}", path);
  }
  for (const auto& key : keys())
    if (const auto what = read_known(key)) used_[what->owner] += what->bytes;
  return {};
}

std::vector<std::string> Keeper::keys() const {
  std::vector<std::string> result;
  std::error_code failed;
  for (const auto& each : std::filesystem::directory_iterator(settings_.folder + "/known", failed))
    if (is_digest("sha256:" + each.path().filename().string())) result.push_back(each.path().filename());
  return result;
}

std::optional<Keeper::Known> Keeper::read_known(const std::string& key) const {
  const auto text = read_file(known(key), k_longest_known);
  if (!text) return std::nullopt;
  const auto lines = split(*text, '\n');
  Known what{lines[0], lines.size() > 1 ? lines[1] : std::string(), 0};
  if (const auto bytes = parse_integer(lines.size() > 2 ? lines[2] : "0"); bytes && *bytes > 0)
    what.bytes = static_cast<std::uint64_t>(*bytes);
  return what;
}

Result<void> Keeper::write_known(const std::string& key, const Known& what) const {
  return replace_file(known(key),
                      fmt::format("{}\n{}\n{}\n", what.image, one_line(what.owner, 500), what.bytes), 0600);
}

std::uint64_t Keeper::used_by(const std::string& owner) {
  const std::scoped_lock lock(mutex_);
  const auto found = used_.find(owner);
  return found == used_.end() ? 0 : found->second;
}

// The key is of the copy's own bytes: nobody else can reach the copy.
Result<Keeper::Copy> Keeper::copy(const Content& content) const {
  const auto most = Limits{}.content;
  const auto began = std::chrono::steady_clock::now();
  Copy result{TRY(open_file(settings_.folder + "/spool", O_TMPFILE | O_RDWR, 0600)), {}, {}};
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
  result.took = std::chrono::steady_clock::now() - began;
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
  if (auto what = read_known(key); what && TRY(shelf_.has(what->image))) {
    ::utimensat(AT_FDCWD, known(key).c_str(), nullptr, 0);  // somebody asks
    return std::optional(std::move(what->image));
  }
  auto found = TRY(shelf_.find(key));
  if (found) TRY(write_known(key, {*found, {}, 0}));
  return found;
}

Result<void> Keeper::expire() {
  if (settings_.keep.count() == 0) return {};
  // One that cannot be looked up or removed, since a container runs in it or for whatever reason, keeps no
  // other.
  const auto tell = [](const std::string& key, const Error& why) {
    spdlog::warn("event=not_expired file=sha256:{} reason={}", key, quoted(why.message()));
  };
  for (const auto& key : TRY(shelf_.tags())) {
    if (!is_digest("sha256:" + key) || read_known(key)) continue;
    if (const auto found = find(key); !found) tell(key, found.error());
  }
  // Files that differ in what no layer has, such as a signature, are one image, which goes with the last.
  std::set<std::string> wanted;
  std::vector<std::string> old;
  for (const auto& key : keys()) {
    if (age_of(known(key)) > settings_.keep)
      old.push_back(key);
    else if (const auto what = read_known(key))
      wanted.insert(what->image);
  }
  for (const auto& key : old)
    if (const auto done = expire(key, wanted); !done) tell(key, done.error());
  return {};
}

Result<void> Keeper::expire(const std::string& key, const std::set<std::string>& wanted) {
  const auto mine = turn(key);
  const std::unique_lock lock(*mine, std::try_to_lock);
  // Whoever has the turn is asking for it.
  if (!lock || age_of(known(key)) <= settings_.keep) return {};
  const auto what = read_known(key);
  if (!what || wanted.contains(what->image)) return {};
  TRY(shelf_.remove(what->image, key));
  if (::unlink(known(key).c_str()) != 0) return Error::system("forget {}", key);
  const std::scoped_lock used(mutex_);
  if (const auto whose = used_.find(what->owner); whose != used_.end())
    whose->second -= std::min(whose->second, what->bytes);
  spdlog::info("event=expired file=sha256:{} image={} owner={}", key, what->image, quoted(what->owner));
  return {};
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
  Share share(*this, owner);
  TRY(check_room(size));
  const Copy copied = TRY(copy({owner, size, [&file](const Sink& sink) { return send_file(file, sink); }}));
  const auto mine = turn(copied.key);
  const std::scoped_lock lock(*mine);
  if (auto image = TRY(look_up(copied.key))) return std::move(*image);
  const Slot slot(*this);
  TRY(share.take(size));
  return make(copied, share);
}

Result<std::string> Keeper::image_of(const std::string& key, const Content& content) {
  const auto mine = turn(key);
  const std::scoped_lock lock(*mine);
  if (auto image = TRY(look_up(key))) return std::move(*image);
  Share share(*this, content.owner);
  TRY(share.take(content.size));
  const Slot slot(*this);
  TRY(check_room(content.size));
  const Copy copied = TRY(copy(content));
  if (copied.key != key)
    return error("the file's SHA-256 is {}, not {}: it changed while it was read", copied.key, key)
        .with(Forged{});
  return make(copied, share);
}

// Where the stream fails, it is made once more: the layer is nowhere else.
Result<Made> Keeper::make(const Copy& copy, Layout& layout, Share& share) {
  const MakeOptions options{.reader = settings_.reader};
  if (auto stream = shelf_.stream()) {
    Bound blobs(layout, shelf_, std::move(stream), share);
    auto made = make_image(copy.file, blobs, options);
    if (made || !blobs.stream_failed()) return made;
    spdlog::info("event=not_streamed file=sha256:{} reason={}", copy.key, quoted(made.error().message()));
    if (::lseek(copy.file.get(), 0, SEEK_SET) != 0) return Error::system("rewind the copy");
  }
  Bound blobs(layout, shelf_, nullptr, share);
  return make_image(copy.file, blobs, options);
}

Result<std::string> Keeper::make(const Copy& copy, Share& share) {
  const std::string folder = settings_.folder + "/making/" + copy.key;
  std::error_code failed;
  std::filesystem::remove_all(folder, failed);
  auto result = [&]() -> Result<std::string> {
    Layout layout(folder, settings_.repository + ":" + copy.key);
    TRY(layout.prepare());
    const auto began = std::chrono::steady_clock::now();
    const Made made = TRY(make(copy, layout, share));
    TRY(layout.finish(made.manifest));
    const auto ended = std::chrono::steady_clock::now();
    TRY(shelf_.put(folder, copy.key));
    std::string image = settings_.repository + "@" + made.manifest.digest;
    if (const auto before = read_known(copy.key)) {  // which the shelf has lost
      const std::scoped_lock lock(mutex_);
      used_[before->owner] -= std::min(used_[before->owner], before->bytes);
    }
    TRY(write_known(copy.key, share.keep(image)));
    const std::chrono::duration<double> making = ended - began,
                                        putting = std::chrono::steady_clock::now() - ended;
    spdlog::info(
        "event=converted file=sha256:{} image={} content={} entries={} left_out={} brought_s={:.1f} "
        "made_s={:.1f} put_s={:.1f}",
        copy.key, image, made.layer.content, made.layer.entries, made.layer.left_out, copy.took.count(),
        making.count(), putting.count());
    return image;
  }();
  std::filesystem::remove_all(folder, failed);
  return result;
}

}  // namespace glidepod::store
