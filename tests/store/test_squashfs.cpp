#include "store/squashfs.hpp"

#include <doctest/doctest.h>

#include "tests/store/image_writer.hpp"

// What libsquashfs cannot have it takes for an error; AddressSanitizer would end the test.
extern "C" const char* __asan_default_options() {  // NOLINT(bugprone-reserved-identifier): ASan's name
  return "allocator_may_return_null=1";
}

using namespace glidepod;
using namespace glidepod::store;
using namespace glidepod::store::written;

namespace {

struct Seen : Visitor {
  std::vector<Entry> entries;
  std::map<std::string, std::string> contents;
  Result<void> entry(const Entry& entry) override {
    entries.push_back(entry);
    return {};
  }
  Result<void> content(std::string_view bytes) override {
    contents[entries.back().path] += bytes;
    return {};
  }
  std::vector<std::string> paths() const {
    std::vector<std::string> result;
    for (const auto& entry : entries) result.push_back(entry.path);
    return result;
  }
};

std::string fault_of_bytes(const std::string& bytes, const Limits& limits = {}) {
  Seen seen;
  const auto read = read_squashfs(in_memory(bytes), {0, bytes.size(), {}}, limits, seen);
  return read ? "" : read.error().message();
}
std::string fault_of(const NodePtr& root, const Limits& limits = {}) {
  return fault_of_bytes(Squashfs::of(root), limits);
}
bool damaged(const std::string& fault) {
  return fault.find("damaged") != std::string::npos;
}

}  // namespace

TEST_CASE("squashfs: all that is in it, folders first, in the order of names") {
  const std::string long_text(300'000, 'y');
  const auto bytes = Squashfs::of(a_folder({{"b", a_folder({{"x", a_file(long_text)}, {"\xff", a_file("")}})},
                                            {"a", a_file("hello")},
                                            {"c", a_link("b/x")},
                                            {"d", a_special(fifo)},
                                            {"e", a_special(device)},
                                            {"f", a_special(socket)},
                                            {"g", a_special(block_device)}}));
  Seen seen;
  const std::string before(777, '-');
  const auto read = read_squashfs(in_memory(before + bytes), {before.size(), bytes.size(), {}}, {}, seen);
  REQUIRE_MESSAGE(read, (read ? "" : read.error().message()));
  CHECK(seen.paths() == std::vector<std::string>{"a", "b", "b/x", "b/\xff", "c", "d", "e", "f", "g"});
  CHECK(seen.contents["a"] == "hello");
  CHECK(seen.contents["b/x"] == long_text);
  CHECK(seen.entries[0].mode == 0644);
  CHECK(seen.entries[0].time == 1'600'000'000);
  CHECK(seen.entries[4].target == "b/x");
  CHECK(seen.entries[5].kind == Entry::Kind::fifo);
  CHECK(seen.entries[6].kind == Entry::Kind::device);
  CHECK(seen.entries[7].kind == Entry::Kind::socket);
  CHECK(seen.entries[8].kind == Entry::Kind::device);
}

TEST_CASE("squashfs: a file with several names has its content once") {
  const auto file = a_file("once");
  file->names = 2;
  const auto bytes = Squashfs::of(a_folder({{"a", a_folder({{"one", file}})}, {"two", file}}));
  Seen seen;
  REQUIRE(read_squashfs(in_memory(bytes), {0, bytes.size(), {}}, {}, seen));
  CHECK(seen.entries.back().path == "two");
  CHECK(seen.entries.back().same_as == "a/one");
  CHECK(seen.contents == std::map<std::string, std::string>{{"a/one", "once"}});
}

TEST_CASE(
    "squashfs: where all names of earlier files were seen is told, and a name too many is a file of its "
    "own") {
  const auto file = a_file("twice");
  file->names = 2;
  const auto bytes = Squashfs::of(a_folder(
      {{"a", a_link("b")}, {"b", file}, {"c", a_link("b")}, {"d", file}, {"e", file}, {"f", a_link("b")}}));
  Seen seen;
  REQUIRE(read_squashfs(in_memory(bytes), {0, bytes.size(), {}}, {}, seen));
  std::string told;
  for (const auto& entry : seen.entries) told += entry.path + (entry.apart ? "| " : " ") + entry.same_as;
  CHECK(told == "a| b| c d be| f ");
  CHECK(seen.contents == std::map<std::string, std::string>{{"b", "twice"}, {"e", "twice"}});
}

TEST_CASE("squashfs: a name that leads out of its folder is refused") {
  for (const std::string& name : {std::string(".."), std::string("."), std::string("../x"),
                                  std::string("/etc"), std::string("a/b"), std::string("a\0b", 3)})
    CHECK(fault_of(a_folder({{"in", a_folder({{name, a_file("x")}})}})) ==
          "the image has a name that leads out of its folder, in '/in'");
}

TEST_CASE("squashfs: a name that stands twice is refused, whatever is between") {
  CHECK(fault_of(a_folder({{"a", a_link("/etc")}, {"b", a_file("")}, {"a", a_folder({})}})) ==
        "the image has a name twice in its folder '/'");
}

TEST_CASE("squashfs: folders without an end are refused") {
  const auto loop = a_folder({});
  loop->children = {{"in", loop}};
  CHECK(fault_of(loop) == "the image has folders in each other, more than 100");
  // Each level has the next one twice: two to the power of their number.
  auto level = a_folder({{"x", a_file("")}});
  for (int i = 0; i < 30; ++i) level = a_folder({{"a", level}, {"b", level}});
  Limits limits;
  limits.entries = 10'000;
  CHECK(fault_of(level, limits) == "the image has more than 10000 files");
  loop->children.clear();
}

TEST_CASE("squashfs: a path that no file system takes is refused") {
  auto level = a_folder({});
  for (int i = 0; i < 20; ++i) level = a_folder({{std::string(250, 'n'), level}});
  CHECK(fault_of(level) == "the image has a name of more than 4095 bytes");
}

TEST_CASE("squashfs: content beyond its limits is refused before it is read") {
  const auto bomb = a_file("");
  bomb->said_size = std::uint64_t{6} << 20;  // of holes
  CHECK(fault_of(a_folder({{"bomb", bomb}})) == "");
  Limits limits;
  limits.free_content = 1 << 20;
  CHECK(fault_of(a_folder({{"bomb", bomb}}), limits) ==
        "the image has more than 1 MiB of content, which is more than a file of its size may have");
  limits = {};
  limits.content = 4 << 20;
  CHECK(fault_of(a_folder({{"bomb", bomb}}), limits) == "the image has more than 4 MiB of content");
  CHECK(
      fault_of(a_folder({{"a", a_file(std::string(3 << 20, 'a'))}, {"b", a_file(std::string(2 << 20, 'b'))}}),
               limits) == "the image has more than 4 MiB of content");
}

TEST_CASE("squashfs: a link that leads nowhere is damage") {
  CHECK(damaged(fault_of(a_folder({{"l", a_link("")}}))));
  CHECK(damaged(fault_of(a_folder({{"l", a_link(std::string("a\0b", 3))}}))));
  CHECK(damaged(fault_of(a_folder({{"l", a_link(std::string(4096, 'a'))}}))));
  CHECK(fault_of(a_folder({{"l", a_link(std::string(4095, 'a'))}})) == "");
}

TEST_CASE("squashfs: another compression is named, and what is cut off is damage") {
  const auto root = a_folder({{"f", a_file("content")}});
  CHECK(fault_of_bytes(Squashfs::of(root, 3)) ==
        "the image is compressed with lzo, which is not read here: build it with gzip or zstd");
  CHECK(fault_of_bytes(Squashfs::of(root, 99)) != "");
  const auto bytes = Squashfs::of(root);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CAPTURE(size);
    CHECK(fault_of_bytes(bytes.substr(0, size)) != "");
    // Nor is what stands behind it in the file a part of it.
    Seen seen;
    CHECK_FALSE(read_squashfs(in_memory(bytes), {0, size, false, {}}, {}, seen));
  }
}

TEST_CASE("squashfs: a byte that is wrong never leads out of the limits") {
  const auto bytes =
      Squashfs::of(a_folder({{"a", a_folder({{"f", a_file("content")}})}, {"l", a_link("a/f")}}));
  Limits limits;
  limits.entries = 1000;
  limits.free_content = 1 << 20;
  limits.ratio = 1;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (const char value : {'\0', '\xff', '\x01'}) {
      auto wrong = bytes;
      wrong[at] = value;
      Seen seen;
      (void)read_squashfs(in_memory(wrong), {0, wrong.size(), {}}, limits, seen);
      std::size_t read = 0;
      for (const auto& [path, text] : seen.contents) read += text.size();
      CHECK(seen.entries.size() <= limits.entries);
      CHECK(read <= limits.free_content + wrong.size());
    }
  }
}
