#include "store/keeper.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <zstd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <random>
#include <set>
#include <thread>

#include "lib/base/file.hpp"
#include "lib/wire/socket.hpp"
#include "store/digest.hpp"
#include "store/layer.hpp"
#include "store/serve.hpp"
#include "tests/store/image_writer.hpp"
#include "tests/temporary_folder.hpp"

using namespace glidepod;
using namespace glidepod::store;
using written::in_memory;

namespace {

// Any file is an image to it: its layer is the file. It is one process, so that none reads on where it is
// ended.
const std::vector<std::string> k_reader = {
    "/bin/sh", "-c",
    R"(printf '{"diff_id": "sha256:%064d", "architecture": "", "runscript": false}\n' 7 >&2; exec cat)"};

// The keys of "one" and "two".
const std::string k_one = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed";
const std::string k_two = "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3";

struct SmallShelf : Shelf {
  std::mutex mutex;
  std::set<std::string> put_as;
  std::atomic<int> puts = 0;
  bool forgets = false;
  Result<void> fails = {};
  std::map<std::string, std::string> found;
  Result<bool> has(const std::string&) override { return !forgets; }
  Result<std::optional<std::string>> find(const std::string& tag) override {
    const auto known = found.find(tag);
    return known == found.end() ? std::optional<std::string>() : known->second;
  }
  Result<std::vector<std::string>> tags() override {
    std::vector<std::string> all;
    for (const auto& [tag, image] : found) all.push_back(tag);
    return all;
  }
  std::vector<std::string> removed;
  std::string stays;  // what cannot be removed
  Result<void> remove(const std::string&, const std::string& tag) override {
    if (tag == stays) return error("{} is in use", tag);
    removed.push_back(tag);
    return {};
  }
  Result<void> put(const std::string& layout, const std::string& tag) override {
    const std::scoped_lock lock(mutex);
    CHECK(std::filesystem::exists(layout + "/index.json"));
    ++puts;
    TRY(fails);
    put_as.insert(tag);
    return {};
  }
};

struct Scene {
  TemporaryFolder folder;
  SmallShelf shelf;
  Keeper keeper{{folder.path + "/store", "localhost/files", k_reader}, shelf};
  Scene() { REQUIRE(keeper.prepare()); }
  std::size_t left(const std::string& part) const {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry :
         std::filesystem::directory_iterator(folder.path + "/store/" + part))
      ++count;
    return count;
  }
};

}  // namespace

TEST_CASE("keeper: the same content is one image, other content another") {
  Scene scene;
  const auto one = scene.keeper.image_of(in_memory("one")), same = scene.keeper.image_of(in_memory("one"));
  REQUIRE(one);
  CHECK(one->starts_with("localhost/files@sha256:"));
  CHECK(*same == *one);
  CHECK(scene.shelf.puts == 1);
  CHECK(scene.keeper.image_of(in_memory("two")).value() != *one);
  CHECK(scene.shelf.puts == 2);
  // By the content's hash.
  CHECK(scene.shelf.put_as.contains(k_one));
  CHECK(scene.left("making") == 0);
  CHECK(scene.left("spool") == 0);
  CHECK(scene.left("known") == 2);
}

TEST_CASE("keeper: many who bring the same content at a time cost one conversion") {
  Scene scene;
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::set<std::string> images;
  threads.reserve(8);
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      const auto image = scene.keeper.image_of(in_memory("one"));
      const std::scoped_lock lock(mutex);
      images.insert(image ? *image : image.error().message());
    });
  for (auto& thread : threads) thread.join();
  CHECK(images.size() == 1);
  CHECK(scene.shelf.puts == 1);
}

TEST_CASE("keeper: what it knows outlives it, and what podman has lost is made again") {
  Scene scene;
  const auto image = scene.keeper.image_of(in_memory("one")).value();
  REQUIRE(replace_file(scene.folder.path + "/store/making/left", "x", 0600, Durable::no));
  Keeper next({scene.folder.path + "/store", "localhost/files", k_reader}, scene.shelf);
  REQUIRE(next.prepare());
  CHECK(scene.left("making") == 0);
  CHECK(next.image_of(in_memory("one")).value() == image);
  CHECK(scene.shelf.puts == 1);
  scene.shelf.forgets = true;
  CHECK(next.image_of(in_memory("one")).value() == image);
  CHECK(scene.shelf.puts == 2);
}

TEST_CASE("keeper: a failure leaves nothing, and the next one tries again") {
  Scene scene;
  scene.shelf.fails = Error("podman pull", ENOSPC);
  const auto full = scene.keeper.image_of(in_memory("one"));
  REQUIRE_FALSE(full);
  CHECK(full.error().fact<BadImage>() == nullptr);
  CHECK(scene.left("making") == 0);
  CHECK(scene.left("known") == 0);
  scene.shelf.fails = {};
  CHECK(scene.keeper.image_of(in_memory("one")));
  Keeper refuses({scene.folder.path + "/store",
                  "localhost/files",
                  {"/bin/sh", "-c", R"(printf '{"error": "bad", "image": true}' >&2; exit 3)"}},
                 scene.shelf);
  const auto bad = refuses.image_of(in_memory("two"));
  REQUIRE_FALSE(bad);
  CHECK(bad.error().fact<BadImage>() != nullptr);
  CHECK(refuses.image_of(open_file(scene.folder.path, O_RDONLY).value()).error().fact<BadImage>() != nullptr);
}

namespace {

constexpr std::uint64_t k_mib = std::uint64_t{1} << 20;

// Noise, which no compression makes smaller.
Fd of_size(std::size_t mib, char letter) {
  std::mt19937_64 random(static_cast<std::uint64_t>(letter));
  std::string bytes;
  while (bytes.size() < mib * k_mib) {
    const auto next = random();
    bytes.append(reinterpret_cast<const char*>(&next), sizeof next);
  }
  return in_memory(bytes);
}
// As if nobody had asked for so long.
void age(const std::string& path, std::chrono::seconds by) {
  const timespec then{::time(nullptr) - by.count(), 0};
  const timespec both[] = {then, then};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), both, 0) == 0);
}

}  // namespace

TEST_CASE("attack: an owner has a quota, and no way around it") {
  Scene scene;
  Keeper keeper({.folder = scene.folder.path + "/store",
                 .repository = "localhost/files",
                 .reader = k_reader,
                 .quota = 5 * k_mib},
                scene.shelf);
  REQUIRE(keeper.prepare());
  CHECK(keeper.image_of(of_size(3, 'a'), "alice"));
  const auto more = keeper.image_of(of_size(3, 'b'), "alice");
  REQUIRE_FALSE(more);
  CHECK(more.error().fact<BadImage>() != nullptr);
  CHECK(more.error().message().find("has 3 MiB of images of alice, of at most 5") != std::string::npos);
  // What is known costs nothing, whoever brought it; another one has a quota of their own.
  CHECK(keeper.image_of(of_size(3, 'a'), "alice"));
  CHECK(keeper.image_of(of_size(3, 'b'), "bob"));
  CHECK(keeper.image_of(of_size(3, 'b'), "alice"));
  CHECK(keeper.image_of(of_size(1, 'c'), "alice"));
  CHECK(keeper.used_by("alice") / k_mib == 4);
  // What fails gives its share back; a store that starts anew counts the same.
  scene.shelf.fails = Error("no", ENOSPC);
  CHECK_FALSE(keeper.image_of(of_size(1, 'd'), "bob"));
  CHECK(keeper.used_by("bob") / k_mib == 3);
  Keeper next({.folder = scene.folder.path + "/store",
               .repository = "localhost/files",
               .reader = k_reader,
               .quota = 5 * k_mib},
              scene.shelf);
  REQUIRE(next.prepare());
  CHECK(next.used_by("alice") == keeper.used_by("alice"));
  CHECK_FALSE(next.image_of(of_size(2, 'e'), "alice"));
}

namespace {

// Reads once a byte comes by this pipe.
std::vector<std::string> reader_at(const std::string& pipe) {
  return {"/bin/sh", "-c", "head -c 1 " + pipe + " >/dev/null; " + k_reader[2]};
}

}  // namespace

TEST_CASE("attack: an owner has no more by bringing files at the same time") {
  Scene scene;
  const std::string pipe = scene.folder.path + "/go";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const Fd go = open_file(pipe, O_RDWR).value();
  Keeper keeper({.folder = scene.folder.path + "/store",
                 .repository = "localhost/files",
                 .reader = reader_at(pipe),
                 .quota = 5 * k_mib},
                scene.shelf);
  REQUIRE(keeper.prepare());
  std::atomic<int> good = 0, refused = 0;
  std::vector<std::thread> threads;
  for (const char letter : {'a', 'b'})
    threads.emplace_back([&, letter] {
      const auto image = keeper.image_of(of_size(3, letter), "alice");
      if (image) ++good;
      if (!image && image.error().fact<BadImage>() != nullptr) ++refused;
    });
  while (refused == 0 && scene.left("making") < 2) std::this_thread::yield();
  CHECK(refused == 1);  // before it is converted
  REQUIRE(write_all(go, "12"));
  for (auto& thread : threads) thread.join();
  CHECK(good == 1);
  CHECK(refused == 1);
  CHECK(keeper.used_by("alice") / k_mib == 3);
}

TEST_CASE("attack: a file that changes while it is converted is what it was when its hash was made") {
  Scene scene;
  const std::string file = scene.folder.path + "/app.sif";
  REQUIRE(replace_file(file, "one", 0600, Durable::no));
  struct LayerShelf : SmallShelf {
    bool is_the_file = false;  // the layer that this reader makes
    Result<void> put(const std::string& layout, const std::string& tag) override {
      for (const auto& blob : std::filesystem::directory_iterator(layout + "/blobs/sha256")) {
        const auto bytes = read_file(blob.path()).value();
        std::string text(100, '\0');
        const auto size = ZSTD_decompress(text.data(), text.size(), bytes.data(), bytes.size());
        is_the_file = is_the_file || (!ZSTD_isError(size) && text.substr(0, size) == "one");
      }
      return SmallShelf::put(layout, tag);
    }
  } shelf;
  Keeper keeper({.folder = scene.folder.path + "/store",
                 .repository = "localhost/files",
                 .reader = {"/bin/sh", "-c", "printf two >" + file + "; " + k_reader[2]}},
                shelf);
  REQUIRE(keeper.image_of(open_file(file, O_RDONLY).value(), "alice"));
  CHECK(read_file(file).value() == "two");
  CHECK(shelf.put_as.contains(k_one));
  CHECK(shelf.is_the_file);
}

TEST_CASE("attack: a small file that becomes a large layer is measured by the layer") {
  Scene scene;
  Keeper keeper({.folder = scene.folder.path + "/store",
                 .repository = "localhost/files",
                 .reader = {"/bin/sh", "-c",
                            R"(head -c 4000000 /dev/urandom; printf '{"diff_id": "sha256:%064d"}\n' 7 >&2)"},
                 .quota = 2 * k_mib},
                scene.shelf);
  REQUIRE(keeper.prepare());
  const auto bomb = keeper.image_of(in_memory("small"), "alice");
  REQUIRE_FALSE(bomb);
  CHECK(bomb.error().fact<BadImage>() != nullptr);
  CHECK(bomb.error().message().find("beyond the quota") != std::string::npos);
  CHECK(scene.shelf.puts == 0);
  CHECK(keeper.used_by("alice") == 0);
}

TEST_CASE(
    "attack: where images are kept unpacked, one of a small file and layer is measured by its content") {
  TemporaryFolder folder;
  struct UnpackingShelf : SmallShelf {
    bool unpacks() const override { return true; }
  } unpacking;
  SmallShelf packed;
  for (SmallShelf* shelf : {static_cast<SmallShelf*>(&unpacking), &packed}) {
    Keeper keeper({.folder = folder.path + "/store",
                   .repository = "localhost/files",
                   .reader = {"/bin/sh", "-c",
                              R"(head -c 4000000 /dev/zero; printf '{"diff_id": "sha256:%064d"}\n' 7 >&2)"},
                   .quota = 2 * k_mib},
                  *shelf);
    REQUIRE(keeper.prepare());
    const auto image = keeper.image_of(in_memory("small"), "alice");
    CHECK(image.ok() == (shelf == &packed));
    CHECK(shelf->puts == (shelf == &packed ? 1 : 0));
  }
  CHECK(PodmanShelf({"podman"}, "localhost/files").unpacks());
}

namespace {

// Takes layers while they are made.
struct StreamShelf : SmallShelf {
  std::map<std::string, std::string> committed;  // by digest
  Result<void> takes = {}, commits = {};
  struct Stream : LayerStream {
    explicit Stream(StreamShelf& shelf) : shelf_(shelf) {}
    Result<void> add(std::string_view bytes) override {
      bytes_ += bytes;
      return shelf_.takes;
    }
    void end() override { ended_ = true; }
    Result<void> commit(const std::string& digest) override {
      TRY(shelf_.commits);
      CHECK(ended_);
      CHECK(shelf_.puts == 0);
      shelf_.committed[digest] = bytes_;
      return {};
    }
    StreamShelf& shelf_;
    std::string bytes_;
    bool ended_ = false;
  };
  std::unique_ptr<LayerStream> stream() override { return std::make_unique<Stream>(*this); }
  std::vector<std::uint64_t> put_sizes;  // of the blobs of the layout that was put last
  Result<void> put(const std::string& layout, const std::string& tag) override {
    put_sizes.clear();
    for (const auto& blob : std::filesystem::directory_iterator(layout + "/blobs/sha256"))
      put_sizes.push_back(blob.file_size());
    return SmallShelf::put(layout, tag);
  }
};

}  // namespace

TEST_CASE("keeper: a layer that is streamed is committed once it is whole and within the quota") {
  TemporaryFolder folder;
  StreamShelf shelf;
  Keeper keeper({.folder = folder.path + "/store",
                 .repository = "localhost/files",
                 .reader = k_reader,
                 .quota = 2 * k_mib},
                shelf);
  REQUIRE(keeper.prepare());
  REQUIRE(keeper.image_of(of_size(1, 'a'), "alice"));
  REQUIRE(shelf.committed.size() == 1);
  const auto& [digest, bytes] = *shelf.committed.begin();
  Digest its;
  its.add(bytes);
  CHECK(its.text() == digest);
  CHECK(bytes.size() > k_mib);
  CHECK(shelf.puts == 1);
  CHECK(shelf.put_sizes.size() == 2);  // configuration and manifest: the layer was on no disk
  // One that is not taken to its end, or that cannot be committed, is made once more and put as a whole.
  for (auto* fails : {&shelf.takes, &shelf.commits}) {
    const std::string owner = fails == &shelf.takes ? "bob" : "carol";
    shelf.puts = 0;
    *fails = Error("no", EIO);
    REQUIRE(keeper.image_of(of_size(1, owner[0]), owner));
    *fails = {};
    CHECK(shelf.puts == 1);
    CHECK(shelf.put_sizes.size() == 3);
    CHECK(std::ranges::max(shelf.put_sizes) > k_mib);
    CHECK(shelf.committed.size() == 1);
    CHECK(keeper.used_by(owner) / k_mib == 1);  // not twice
  }
}

TEST_CASE("keeper: each of several layers is a stream of its own, and all are committed at the end") {
  TemporaryFolder folder;
  StreamShelf shelf;
  Keeper keeper(
      {.folder = folder.path + "/store",
       .repository = "localhost/files",
       .reader = {"/bin/sh", "-c",
                  R"(printf '{"diff_id": "sha256:%064d", "ended_at": 3}\n' 5 >&2; printf onetwo; )" +
                      k_reader[2]}},
      shelf);
  REQUIRE(keeper.prepare());
  REQUIRE(keeper.image_of(in_memory("three"), "alice"));
  std::set<std::string> texts;
  std::uint64_t all = 0;
  for (const auto& [digest, bytes] : shelf.committed) {
    std::string text(100, '\0');
    const auto size = ZSTD_decompress(text.data(), text.size(), bytes.data(), bytes.size());
    REQUIRE_FALSE(ZSTD_isError(size));
    texts.insert(text.substr(0, size));
    all += bytes.size();
  }
  CHECK(texts == std::set<std::string>{"one", "twothree"});
  CHECK(keeper.used_by("alice") == all);
  CHECK(shelf.put_sizes.size() == 2);
}

TEST_CASE("attack: a layer beyond the quota is not committed, nor is one that its reader did not end") {
  const std::string two = R"(printf '{"diff_id": "sha256:%064d", "ended_at": 1500000}\n' 5 >&2; )";
  const std::string whole = R"(printf '{"diff_id": "sha256:%064d"}\n' 7 >&2)", fails = "exit 3";
  for (const auto& [begin, end] :
       {std::pair{std::string(), whole}, {std::string(), fails}, {two, whole}, {two, fails}}) {
    TemporaryFolder folder;
    StreamShelf shelf;
    Keeper keeper({.folder = folder.path + "/store",
                   .repository = "localhost/files",
                   .reader = {"/bin/sh", "-c", fmt::format("{}head -c 4000000 /dev/urandom; {}", begin, end)},
                   .quota = 2 * k_mib},
                  shelf);
    REQUIRE(keeper.prepare());
    CHECK_FALSE(keeper.image_of(in_memory("small"), "alice"));
    CHECK(shelf.committed.empty());
    CHECK(shelf.puts == 0);
  }
}

TEST_CASE("keeper: what nobody has asked for is removed, and what is asked for stays") {
  Scene scene;
  Keeper keeper({.folder = scene.folder.path + "/store",
                 .repository = "localhost/files",
                 .reader = k_reader,
                 .keep = std::chrono::hours(24)},
                scene.shelf);
  REQUIRE(keeper.prepare());
  REQUIRE(keeper.image_of(in_memory("one"), "alice"));
  REQUIRE(keeper.image_of(in_memory("two"), "alice"));
  const auto path = [&](const std::string& key) { return scene.folder.path + "/store/known/" + key; };
  for (const auto& key : {k_one, k_two}) age(path(key), std::chrono::hours(25));
  REQUIRE(keeper.image_of(in_memory("two"), "bob"));
  // One of an earlier store, whose folder is lost: it is kept from now on.
  scene.shelf.found[std::string(64, 'c')] = "localhost/files@sha256:" + std::string(64, 'd');
  REQUIRE(keeper.expire());
  CHECK(scene.shelf.removed == std::vector{k_one});
  CHECK(scene.left("known") == 2);
  scene.shelf.found.clear();
  age(path(std::string(64, 'c')), std::chrono::hours(25));
  REQUIRE(keeper.expire());
  CHECK(scene.shelf.removed.size() == 2);
  const auto left = keeper.used_by("alice");
  REQUIRE(keeper.image_of(in_memory("one"), "alice"));
  CHECK(keeper.used_by("alice") > left);
}

namespace {

// Has both for a day.
struct OldScene : Scene {
  explicit OldScene(const std::vector<std::string>& reader = k_reader)
      : keeping({.folder = folder.path + "/store",
                 .repository = "localhost/files",
                 .reader = reader,
                 .keep = std::chrono::hours(24)},
                shelf) {
    REQUIRE(keeping.prepare());
    for (const char* text : {"one", "two"}) REQUIRE(keeping.image_of(in_memory(text), "alice"));
  }
  void forget(const std::string& key) { age(folder.path + "/store/known/" + key, std::chrono::hours(25)); }
  Keeper keeping;
};

}  // namespace

TEST_CASE("keeper: what cannot be removed keeps nothing else") {
  for (const auto& stays : {k_one, k_two}) {
    OldScene scene;
    for (const auto& key : {k_one, k_two}) scene.forget(key);
    scene.shelf.stays = stays;
    REQUIRE(scene.keeping.expire());
    CHECK(scene.shelf.removed == std::vector{stays == k_one ? k_two : k_one});
    CHECK(scene.left("known") == 1);
    scene.shelf.stays.clear();
    REQUIRE(scene.keeping.expire());
    CHECK(scene.left("known") == 0);
  }
}

TEST_CASE("keeper: an image of several files stays as long as one of them is asked for") {
  OldScene scene({"/bin/sh", "-c", R"(printf '{"diff_id": "sha256:%064d"}\n' 7 >&2; printf same)"});
  scene.forget(k_one);
  REQUIRE(scene.keeping.expire());
  CHECK(scene.shelf.removed.empty());
  CHECK(scene.left("known") == 2);
  scene.forget(k_two);
  REQUIRE(scene.keeping.expire());
  CHECK(std::set(scene.shelf.removed.begin(), scene.shelf.removed.end()) == std::set{k_one, k_two});
  CHECK(scene.left("known") == 0);
}

TEST_CASE("attack: a disk that is nearly full takes no file") {
  Scene scene;
  Keeper keeper({.folder = scene.folder.path + "/store",
                 .repository = "localhost/files",
                 .reader = k_reader,
                 .free = std::uint64_t{1} << 60},
                scene.shelf);
  REQUIRE(keeper.prepare());
  const auto full = keeper.image_of(in_memory("one"), "alice");
  REQUIRE_FALSE(full);
  CHECK(full.error().fact<NoRoom>() != nullptr);
  CHECK(full.error().fact<BadImage>() == nullptr);
  CHECK(scene.left("spool") == 0);
}

TEST_CASE("podman: its words come back, and an image that it has not is no failure") {
  PodmanShelf without({"/bin/sh", "-c", "exit 1", "sh"}, "localhost/files");
  CHECK_FALSE(without.has("x").value());
  PodmanShelf with({"/bin/true"}, "localhost/files");
  CHECK(with.has("x").value());
  PodmanShelf broken({"/bin/sh", "-c", "echo no space >&2; exit 125", "sh"}, "localhost/files");
  CHECK(broken.has("x").error().message() == "podman image exists: no space");
  CHECK(broken.put("/tmp/x", "1").error().message() == "podman pull: no space");
  PodmanShelf killed({"/bin/sh", "-c", "kill -9 $$", "sh"}, "localhost/files");
  CHECK(killed.has("x").error().message().find("signal 9") != std::string::npos);
}

TEST_CASE("serve: an agent hands a file over, and gets its image, and what it says wrong is answered") {
  Scene scene;
  Loop loop = Loop::create().value();
  Server server(loop, scene.keeper);
  const auto path = scene.folder.path + "/socket";
  REQUIRE(server.listen(path));
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  std::vector<wire::Frame> answers;
  const auto channel = wire::Channel::create(loop, wire::connect_to(path, SOCK_NONBLOCK).value(),
                                             {[&](wire::Frame frame) { answers.push_back(std::move(frame)); },
                                              [](const Error&) {}})
                           .value();
  const auto answer = [&] {
    for (int i = 0; i < 100 && answers.empty(); ++i) REQUIRE(loop.run_once(std::chrono::seconds(5)));
    REQUIRE(answers.size() == 1);
    auto frame = std::move(answers[0]);
    answers.clear();
    return frame;
  };
  const Fd file = in_memory("one");
  REQUIRE(channel->send(wire::StoreImage{.owner = "alice"}, {file.get()}));
  CHECK(answer().decode<wire::ImageStored>()->image.starts_with("localhost/files@sha256:"));
  REQUIRE(channel->send(wire::StoreImage{.owner = "alice"}));
  CHECK(answer().decode<wire::Failed>()->message == "the request came without its file");
  REQUIRE(channel->send(wire::StoreImage{.protocol = 1}, {file.get()}));
  const auto failed = answer().decode<wire::Failed>();
  CHECK(failed->message.find("protocol 1") != std::string::npos);
  CHECK(failed->fault == wire::Fault::infrastructure);
}
