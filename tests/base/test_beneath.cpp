#include "lib/base/beneath.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "lib/base/file.hpp"
#include "tests/temporary_folder.hpp"

using namespace glidepod;
namespace fs = std::filesystem;

namespace {

// An image with a file, links of every kind to it, and links that want to lead out.
struct Tree {
  TemporaryFolder folder;
  Fd held;
  Tree() {
    const fs::path root = folder.path;
    fs::create_directories(root / "store/deep");
    REQUIRE(replace_file(root / "store/file", "inside", 0644).ok());
    REQUIRE(replace_file(root / "file", "top", 0644).ok());
    const auto link = [&](const char* name, const char* target) { fs::create_symlink(target, root / name); };
    link("absolute", "/store/file");
    link("relative", "store/file");
    link("folder", "/store");
    link("twice", "folder/deep/../file");
    link("up", "../../../../../../../../store/file");
    link("out", "/../etc/passwd");
    link("loop", "loop");
    link("nowhere", "/store/missing");
    link("top", "/");
    held = open_tree(folder.path, O_PATH);
    REQUIRE(held);
  }
};

// What both ways say: the file's content or the errno.
std::string look(const Fd& folder, const std::string& path, Through through) {
  std::string said[2];
  for (const bool by_hand : {false, true}) {
    const Fd fd = by_hand ? walk_beneath(folder.get(), path, O_RDONLY, through)
                          : open_beneath(folder, path, O_RDONLY, through);
    const int code = errno;
    struct stat info {};
    if (!fd)
      said[by_hand] = strerrorname_np(code);
    else if (::fstat(fd.get(), &info) == 0 && S_ISDIR(info.st_mode))
      said[by_hand] = "folder";
    else
      said[by_hand] = read_all(fd, path, 100).value();
  }
  return said[0] == said[1] ? said[0] : said[0] + " but by hand " + said[1];
}

}  // namespace

TEST_CASE("beneath: an image's links lead where the image has them, and never out") {
  const Tree tree;
  const auto at = [&](const char* path) { return look(tree.held, path, Through::links); };
  for (const char* path : {"store/file", "/store/file", "absolute", "relative", "folder/file", "twice", "up",
                           "store/deep/../file", "top/store//./file"})
    CHECK(at(path) == "inside");
  CHECK(at("../file") == "top");
  CHECK(at("top") == "folder");
  CHECK(at("store/..") == "folder");
  for (const char* path : {"out", "nowhere", "missing", "missing/file"}) CHECK(at(path) == "ENOENT");
  CHECK(at("loop") == "ELOOP");
  CHECK(at("file/x") == "ENOTDIR");
}

TEST_CASE("beneath: where jobs write no link is followed, on the way or at its end") {
  const Tree tree;
  const auto at = [&](const char* path) { return look(tree.held, path, Through::nothing); };
  CHECK(at("store/file") == "inside");
  CHECK(at("store/deep/../file") == "inside");
  for (const char* path : {"absolute", "relative", "folder/file", "folder", "top", "loop", "nowhere"})
    CHECK(at(path) == "ELOOP");
  CHECK_FALSE(open_tree(tree.folder.path + "/folder"));
  CHECK(errno == ELOOP);
}

TEST_CASE("beneath: other mounts are entered only where that is asked for") {
  const Fd root = open_tree("/", O_PATH);
  for (const auto through : {Through::nothing, Through::links}) {
    CHECK(look(root, "proc", through) == "EXDEV");
    CHECK(look(root, "proc/self/root/etc", through) == "EXDEV");
  }
  CHECK(look(root, "proc", Through::mounts) == "folder");
  CHECK(look(root, "proc/self", Through::mounts) == "ELOOP");
  CHECK(open_tree("/proc"));
}

TEST_CASE("beneath: what is created is created there, and a link is no place for it") {
  const Tree tree;
  for (const bool by_hand : {false, true}) {
    const auto create = [&](const char* path) {
      return by_hand
                 ? walk_beneath(tree.held.get(), path, O_WRONLY | O_CREAT | O_EXCL, Through::nothing, 0600)
                 : open_beneath(tree.held, path, O_WRONLY | O_CREAT | O_EXCL, Through::nothing, 0600);
    };
    CHECK(create("store/new"));
    fs::remove(fs::path(tree.folder.path) / "store/new");
    CHECK_FALSE(create("nowhere"));
    CHECK_FALSE(create("folder/new"));
    CHECK_FALSE(create("file"));
  }
  CHECK_FALSE(fs::exists(fs::path(tree.folder.path) / "store/missing"));
}

TEST_CASE("beneath: a folder has the mode that was asked for, and what is there stays as it is") {
  const Tree tree;
  const mode_t before = ::umask(0277);
  const auto made = make_folder(tree.held, "made", 01777);
  ::umask(before);
  REQUIRE(made.ok());
  struct stat info {};
  REQUIRE(::fstat(made->get(), &info) == 0);
  CHECK((info.st_mode & 07777) == 01777);
  for (const char* name : {"made", "store", "folder", "nowhere", "file"})
    CHECK(make_folder(tree.held, name, 01777).error().code() == EEXIST);
  REQUIRE(::fstatat(tree.held.get(), "store", &info, 0) == 0);
  CHECK((info.st_mode & 07777) == 0755);
}

TEST_CASE("beneath: a change is one of what is held, not of what has its name now") {
  const Tree tree;
  const fs::path root = tree.folder.path;
  const Fd held = open_beneath(tree.held, "store/file", O_PATH);
  fs::rename(root / "store/file", root / "moved");
  fs::create_symlink(root / "file", root / "store/file");
  REQUIRE(set_mode(held, 0400).ok());
  struct stat info {};
  REQUIRE(::stat((root / "moved").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0400);
  REQUIRE(::stat((root / "file").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0644);
  CHECK(read_all(reopen(held, O_RDONLY).value(), "held", 100).value() == "inside");
}
