#include "store/folder.hpp"

#include <doctest/doctest.h>

#include "store/layer.hpp"
#include "tests/store/folder_writer.hpp"
#include "tests/store/image_writer.hpp"

using namespace glidepod;
using namespace glidepod::store;
using written::tar;

namespace {

struct Seen : Visitor {
  std::string list;
  Result<void> entry(const Entry& entry) override {
    list += (list.empty() ? "" : " ") + entry.path;
    if (!entry.target.empty()) list += "->" + entry.target;
    if (!entry.same_as.empty()) list += "=" + entry.same_as;
    return {};
  }
  Result<void> content(std::string_view bytes) override {
    list += ":" + std::string(bytes);
    return {};
  }
};

std::string read(const std::string& bytes, const Limits& limits = {}) {
  Seen seen;
  const auto result = read_folder(written::in_memory(bytes), limits, seen);
  return result ? seen.list : result.error().message();
}

}  // namespace

TEST_CASE("folder: what an agent makes of one") {
  const auto bytes = tar(
      {{'5', "bin"}, {'0', "bin/a", "one"}, {'1', "bin/b", "", "bin/a"}, {'2', "c", "", "/etc"}, {'6', "p"}});
  CHECK(read(bytes) == "bin bin/a:one bin/b=bin/a c->/etc p");
  CHECK(is_folder(bytes));
  CHECK_FALSE(is_folder(bytes.substr(1024)));
  const auto layer =
      write_layers(written::in_memory(bytes), {}, [](std::string_view) -> Result<void> { return {}; });
  REQUIRE(layer);
  CHECK(layer->entries == 5);
  CHECK(layer->content == 3);
}

TEST_CASE("folder: names that lead out of it are refused") {
  for (const char* path : {"../a", "/a", "a/../../b", "..", "a//b", "./a", "a/."})
    CHECK_MESSAGE(read(tar({{'0', path}})) == "the folder has a name that leads out of it", path);
  CHECK(read(tar({{'0', "a"}, {'1', "b", "", "../../etc/passwd"}})) ==
        "the folder has a name that leads out of it");
}

TEST_CASE("folder: devices and other kinds are refused, and so is what is too much, too deep or cut off") {
  for (const char type : {'3', '4'})
    CHECK(read(tar({{type, "a"}})).find("of a kind that is not read here") != std::string::npos);
  CHECK(read(tar({{'0', "a", "12345"}}), {.content = 4}).find("MiB of content") != std::string::npos);
  CHECK(read(tar({{'5', "a"}, {'5', "b"}}), {.entries = 1}) == "the image has more than 1 files");
  CHECK(read(tar({{'2', "a", "", "bcdef"}}), {.path = 4}) == "the link '/a' leads nowhere");
  CHECK(read(tar({{'5', "abcde"}}), {.path = 4}) == "the image has a name of more than 4 bytes");
  CHECK(read(tar({{'5', "a/b/c/d"}}), {.depth = 2}) == "the image has folders in each other, more than 2");
  CHECK(read(tar({{'0', "a", "123", "", std::uint64_t{1} << 32}})).find("folder") != std::string::npos);
  CHECK(read(tar({{'0', "a", std::string(2000, 'x')}}).substr(0, 2000)).find("folder") != std::string::npos);
}

TEST_CASE("attack: a folder that claims more content than its tar has is refused") {
  // A MiB of nothing but three bytes, as GNU's tar has files with holes.
  const std::string records =
      "27 GNU.sparse.size=1048576\n"
      "26 GNU.sparse.numblocks=2\n"
      "32 GNU.sparse.map=0,3,1048576,0\n";
  CHECK(read(tar({{'x', "pax", records}, {'0', "a", "123"}})) ==
        "the folder claims more content than its file has");
  // What is there may be all of it.
  CHECK(read(tar({{'0', "a", std::string(100'000, 'x')}})).size() > 100'000);
}
