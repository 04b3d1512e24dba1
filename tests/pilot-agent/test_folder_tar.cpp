#include "pilot-agent/folder_tar.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <thread>

#include "lib/base/beneath.hpp"
#include "lib/base/child.hpp"
#include "lib/base/file.hpp"
#include "lib/wire/socket.hpp"
#include "tests/temporary_folder.hpp"

using namespace glidepod;
using namespace glidepod::agent;
namespace fs = std::filesystem;

namespace {

struct Written {
  Result<void> result = error("nothing yet");
  std::string bytes;
};

std::string text_of(const Fd& file) {
  ::lseek(file.get(), 0, SEEK_SET);
  return read_all(file, "a file", 64 << 20).value();
}

Written tar_of(const std::string& folder, const FolderRules& rules = {}) {
  const Fd to(::memfd_create("tar", MFD_CLOEXEC));
  Written written;
  written.result = write_folder_tar(open_file(folder, O_PATH | O_DIRECTORY).value(), rules, to);
  written.bytes = text_of(to);
  return written;
}

// The same, with something done to the folder when the writer's first MiB is full, before any more is read.
Written tar_meanwhile(const std::string& folder, const std::function<void()>& change) {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const Fd from(ends[0]);
  Written written;
  std::thread writer([&written, &folder, end = ends[1]] {
    const Fd to(end);
    written.result = write_folder_tar(open_file(folder, O_PATH | O_DIRECTORY).value(), {}, to);
  });
  char first = 0;
  CHECK(::read(from.get(), &first, 1) == 1);
  change();
  written.bytes = first + read_all(from, "a tar", 64 << 20).value();
  writer.join();
  return written;
}

std::string fault(const Written& written) {
  return written.result ? "none" : written.result.error().message();
}

// As the machine's own tar lists it.
std::string listing(const std::string& bytes) {
  const Fd in(::memfd_create("in", MFD_CLOEXEC)), out(::memfd_create("out", MFD_CLOEXEC));
  REQUIRE(write_all(in, bytes));
  ::lseek(in.get(), 0, SEEK_SET);
  auto child = Child::spawn({.argv = {"/bin/tar", "--utc", "-tvf", "-"},
                             .environment = {"LC_ALL=C"},
                             .stdin_fd = in.get(),
                             .stdout_fd = out.get(),
                             .stderr_fd = out.get()});
  REQUIRE(child);
  REQUIRE(child->wait());
  return text_of(out);
}

void write(const std::string& path, const std::string& text, mode_t mode = 0644) {
  REQUIRE(replace_file(path, text, mode, Durable::no));
}

}  // namespace

TEST_CASE("folder tar: what a tar program reads of it") {
  const TemporaryFolder folder;
  const std::string deep = folder.path + "/" + std::string(90, 'd') + "/" + std::string(90, 'e');
  fs::create_directories(deep);
  write(deep + "/file", std::string(1000, 'x'), 0700);
  write(folder.path + "/a", "one", 0600);
  fs::create_hard_link(folder.path + "/a", folder.path + "/b");
  fs::create_symlink("/etc/passwd", folder.path + "/link");
  fs::create_symlink(std::string(150, 'l'), folder.path + "/longlink");
  REQUIRE(::mkfifo((folder.path + "/pipe").c_str(), 0600) == 0);
  const Fd socket = wire::listen_at(folder.path + "/socket", 0600).value();
  REQUIRE(::chmod((folder.path + "/a").c_str(), 04600) == 0);
  const auto written = tar_of(folder.path);
  REQUIRE_MESSAGE(written.result, fault(written));
  const std::string list = listing(written.bytes);
  CAPTURE(list);
  for (const std::string& line : {std::string("-rw-r--r-- 0/0               3 1980-01-01 00:00 a\n"),
                                  std::string("0 1980-01-01 00:00 b link to a\n"),
                                  std::string("-rwxr-xr-x 0/0            1000 1980-01-01 00:00 ") +
                                      std::string(90, 'd') + "/" + std::string(90, 'e') + "/file\n",
                                  std::string(" link -> /etc/passwd\n"),
                                  " longlink -> " + std::string(150, 'l') + "\n", std::string("prw-r--r--")})
    CHECK_MESSAGE(list.find(line) != std::string::npos, line);
  CHECK(list.find("socket") == std::string::npos);
}

TEST_CASE("folder tar: the same content gives the same bytes, whenever it was made") {
  const TemporaryFolder one, two;
  for (const std::string name : {"a", "b", "c"}) write(one.path + "/" + name, name);
  for (const std::string name : {"c", "b", "a"}) write(two.path + "/" + name, name);
  const timespec old[2] = {{1000, 0}, {1000, 0}};
  REQUIRE(::utimensat(AT_FDCWD, (two.path + "/a").c_str(), old, 0) == 0);
  CHECK(tar_of(one.path).bytes == tar_of(two.path).bytes);
  CHECK(tar_of(one.path, {.times = true}).bytes != tar_of(two.path, {.times = true}).bytes);
}

TEST_CASE("folder tar: what is not this user's, too much or too deep is refused") {
  const TemporaryFolder folder;
  fs::create_directories(folder.path + "/a/b/c");
  write(folder.path + "/a/f", "12345");
  CHECK(fault(tar_of(folder.path, {.user = ::geteuid() + 1})).find("belongs to user") != std::string::npos);
  CHECK(fault(tar_of(folder.path, {.user = ::geteuid()})) == "none");
  CHECK(fault(tar_of(folder.path, {.content = 4})).find("MiB of content") != std::string::npos);
  write(folder.path + "/a/g", "123");
  CHECK(fault(tar_of(folder.path, {.content = 8})) == "none");
  CHECK(fault(tar_of(folder.path, {.content = 7})).find("MiB of content") != std::string::npos);
  fs::remove(folder.path + "/a/g");
  CHECK(fault(tar_of(folder.path, {.entries = 3})) == "the image has more than 3 files");
  CHECK(fault(tar_of(folder.path, {.depth = 1})) == "the image has folders in each other, more than 1");
}

TEST_CASE("folder tar: the names that it has to hold are bounded, however many there are in all") {
  const TemporaryFolder folder;
  for (const char* name : {"/a", "/b", "/c"}) {
    fs::create_directory(folder.path + name);
    for (int i = 0; i < 10; ++i) write(folder.path + name + "/" + std::to_string(i), "");
  }
  // Three names and the ten of one folder at a time.
  const std::size_t room = 13 * 97;
  CHECK(fault(tar_of(folder.path, {.names = room})) == "none");
  CHECK(fault(tar_of(folder.path, {.names = room - 1})).find("too many files in one folder") !=
        std::string::npos);
  // The first name of each file with several stays.
  fs::create_hard_link(folder.path + "/a/0", folder.path + "/a/1x");
  const std::size_t with_link = room + (2 + 96) + (3 + 96);  // "1x", and "a/0"
  CHECK(fault(tar_of(folder.path, {.names = with_link})) == "none");
  CHECK(fault(tar_of(folder.path, {.names = with_link - 1})).find("with several names") != std::string::npos);
}

TEST_CASE("folder tar: a file with a hole as large as a disk is refused before it is read") {
  const TemporaryFolder folder;
  write(folder.path + "/f", "");
  REQUIRE(::truncate((folder.path + "/f").c_str(), std::int64_t{1} << 40) == 0);
  CHECK(fault(tar_of(folder.path)).find("more than 20480 MiB of content") != std::string::npos);
}

TEST_CASE("folder tar: a file that says more than it has is refused") {
  // The kernel's say 4096 and have a few bytes.
  const auto written = tar_of("/sys/kernel/mm/transparent_hugepage");
  CHECK(fault(written).find("has changed while it was read") != std::string::npos);
}

TEST_CASE("folder tar: a path that no system has is refused") {
  const TemporaryFolder folder;
  Fd deepest = open_file(folder.path, O_PATH | O_DIRECTORY).value();
  for (int i = 0; i < 17; ++i) deepest = make_folder(deepest, std::string(250, 'd'), 0755).value();
  CHECK(fault(tar_of(folder.path)) == "the image has a name of more than 4095 bytes");
}

TEST_CASE("folder tar: another mount is not entered") {
  CHECK(fault(tar_of("/dev")).find(" of the image: Invalid cross-device link") != std::string::npos);
}

TEST_CASE("attack: what is added to a file while it is read is not read") {
  const TemporaryFolder folder;
  write(folder.path + "/f", std::string((2 << 20) + 100, 'x'));
  const auto before = tar_of(folder.path);
  const auto written = tar_meanwhile(folder.path, [&] {
    const Fd file = open_file(folder.path + "/f", O_WRONLY | O_APPEND).value();
    CHECK(write_all(file, std::string(1000, 'y')));
  });
  REQUIRE_MESSAGE(written.result, fault(written));
  CHECK((written.bytes == before.bytes));
}

TEST_CASE("attack: a file that is emptied while it is read is refused") {
  const TemporaryFolder folder;
  write(folder.path + "/f", std::string(2 << 20, 'x'));
  const auto written =
      tar_meanwhile(folder.path, [&] { CHECK(::truncate((folder.path + "/f").c_str(), 0) == 0); });
  CHECK(fault(written) == "'/f' of the image has changed while it was read");
}

TEST_CASE("attack: a file that becomes a link before it is read leads nowhere") {
  const TemporaryFolder folder, elsewhere;
  // Before the content of b: two blocks of the mark, a with its header, the header of b. That is 1 MiB.
  write(folder.path + "/a", std::string((1 << 20) - 2048, 'x'));
  write(folder.path + "/b", "inside");
  write(elsewhere.path + "/secret", "secret");
  const auto written = tar_meanwhile(folder.path, [&] {
    fs::remove(folder.path + "/b");
    fs::create_symlink(elsewhere.path + "/secret", folder.path + "/b");
  });
  REQUIRE_MESSAGE(written.result, fault(written));
  CHECK(written.bytes.substr((1 << 20) - 512, 2) == std::string("b\0", 2));
  CHECK(written.bytes.substr(1 << 20, 6) == "inside");
}

TEST_CASE("folder tar: a full disk is not the image's fault") {
  const TemporaryFolder folder;
  write(folder.path + "/f", std::string(2 << 20, 'x'));
  const Fd full = open_file("/dev/full", O_WRONLY).value();
  const auto result = write_folder_tar(open_file(folder.path, O_PATH | O_DIRECTORY).value(), {}, full);
  REQUIRE_FALSE(result);
  CHECK(result.error().code() == ENOSPC);
}
