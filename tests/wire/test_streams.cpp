#include "lib/wire/streams.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "lib/base/file.hpp"
#include "lib/wire/socket.hpp"
#include "tests/temporary_folder.hpp"

using namespace glidepod;
using namespace glidepod::wire;
namespace fs = std::filesystem;

namespace {

// A volume with two sandboxes, and a file outside of both.
struct Scene {
  TemporaryFolder folder;
  const std::string volume = folder.path + "/scratch";
  StreamRules rules{volume, volume + "/dir_1", 0};

  Scene() {
    fs::create_directories(volume + "/dir_1/d");
    fs::create_directories(volume + "/dir_10");
    for (const char* file :
         {"scratch/dir_1/in", "scratch/dir_1/d/in", "scratch/dir_10/in", "scratch/in", "secret"})
      REQUIRE(open_file(folder.path + "/" + file, O_WRONLY | O_CREAT, 0644).ok());
    REQUIRE(::mkfifo((volume + "/dir_1/fifo").c_str(), 0600) == 0);
    REQUIRE(::mkfifo((folder.path + "/fifo").c_str(), 0600) == 0);
  }
  std::string judge(Fd fd) const {
    std::vector<Fd> streams;
    streams.push_back(std::move(fd));
    const auto judged = judge_streams(streams, rules);
    return judged ? "" : judged.error().message();
  }
  std::string judge(const std::string& path, int flags = O_RDONLY) const {
    return judge(open_file(path.starts_with('/') ? path : volume + "/" + path, flags | O_NOCTTY).value());
  }
  bool passes(const std::string& path, int flags = O_RDONLY) const { return judge(path, flags).empty(); }
};

bool says(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE(
    "streams: files below the job's sandbox, pipes, pairs of sockets and /dev/null may be handed over") {
  const Scene s;
  CHECK(s.passes("dir_1/in"));
  CHECK(s.passes("dir_1/d/in"));
  CHECK(s.passes("dir_1/in", O_WRONLY | O_APPEND));
  CHECK(s.passes("dir_1/fifo", O_RDWR));
  CHECK(s.passes("/dev/null"));
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  for (const int end : ends) CHECK(s.judge(Fd(end)).empty());
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  Fd other(::dup(ends[1]));
  for (const int end : ends) CHECK(s.judge(Fd(end)).empty());
}

TEST_CASE("streams: what leads out of the job's container is refused, and said what it is") {
  const Scene s;
  CHECK(says(s.judge("dir_1/d"), "is a folder"));
  CHECK(says(s.judge("dir_1"), "is a folder"));
  CHECK(says(s.judge("/"), "/ is a folder"));
  CHECK(says(s.judge(s.folder.path + "/secret"), "secret is not in the job's own folder"));
  CHECK(says(s.judge("in"), "not in the job's own folder"));
  // Another's sandbox, also where its name begins like the job's own.
  CHECK(says(s.judge("dir_10/in"), "not in the job's own folder"));
  CHECK(says(s.judge(s.folder.path + "/fifo", O_RDWR), "not in the job's own folder"));
  CHECK(says(s.judge("/proc/self/status"), "not in the job's own folder"));
  CHECK(says(s.judge("/sys/kernel/mm/transparent_hugepage/enabled"), "not in the job's own folder"));
  CHECK(says(s.judge("/dev/zero"), "is a device"));
  CHECK(says(s.judge("dir_1/in", O_PATH), "as a path only"));
  CHECK(says(s.judge("dir_1/d", O_PATH | O_DIRECTORY), "as a path only"));
  CHECK(says(s.judge(Fd(::memfd_create("m", MFD_CLOEXEC))), "without a name"));
  CHECK(says(s.judge(Fd()), "not open"));
}

TEST_CASE("streams: links, names and removals do not hide what a file is") {
  const Scene s;
  const std::string secret = s.folder.path + "/secret", own = s.volume + "/dir_1";
  fs::create_symlink(secret, own + "/link");
  CHECK(says(s.judge("dir_1/link"), "secret is not in the job's own folder"));
  fs::create_directory_symlink(s.folder.path, own + "/way");
  CHECK(says(s.judge("dir_1/way/secret"), "not in the job's own folder"));
  // It was there, and another has its name now.
  Fd moved = open_file(own + "/in", O_RDONLY).value();
  fs::rename(own + "/in", s.volume + "/dir_10/moved");
  CHECK(says(s.judge(Fd(::dup(moved.get()))), "not in the job's own folder"));
  Fd gone = open_file(own + "/d/in", O_RDONLY).value();
  fs::remove(own + "/d/in");
  CHECK(says(s.judge(Fd(::dup(gone.get()))), "without a name"));
  // By its second name, the kernel's name for the first being another file's now.
  Fd named = open_file(own + "/fifo", O_RDWR).value();
  fs::create_hard_link(own + "/fifo", own + "/second");
  fs::remove(own + "/fifo");
  fs::create_symlink(secret, own + "/fifo");
  CHECK_FALSE(s.judge(std::move(named)).empty());
}

TEST_CASE("streams: without a sandbox no file is the job's, and the volume stands for every sandbox") {
  Scene s;
  for (const char* sandbox : {"", "/", "/tmp", "/elsewhere"}) {
    CAPTURE(sandbox);
    s.rules.sandbox = sandbox;
    CHECK_FALSE(s.passes("dir_1/in"));
    CHECK(s.passes("/dev/null"));
  }
  s.rules.sandbox = s.volume + "/dir_1/../../";
  CHECK_FALSE(s.passes(s.folder.path + "/secret"));
  s.rules.sandbox = s.volume;
  CHECK(s.passes("dir_1/in"));
  CHECK(s.passes("dir_10/in"));
  CHECK_FALSE(s.passes(s.folder.path + "/secret"));
  // The volume by another name.
  fs::create_directory_symlink(s.volume, s.folder.path + "/alias");
  s.rules = {s.folder.path + "/alias", s.folder.path + "/alias/dir_1", 0};
  CHECK(s.passes("dir_1/in"));
  CHECK_FALSE(s.passes("dir_10/in"));
}

TEST_CASE("streams: a socket with an address is a connection to somebody") {
  const Scene s;
  const std::string path = s.folder.path + "/daemon";
  Fd listener = listen_at(path, 0600).value();
  Fd client = connect_to(path).value();
  Fd server = accept_from(listener).value();
  for (Fd* fd : {&client, &server, &listener})
    CHECK(says(s.judge(std::move(*fd)), "a socket with an address"));
  CHECK(says(s.judge(Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0))), "a socket with an address"));
  CHECK(says(s.judge(Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))), "a socket with an address"));
}

TEST_CASE("streams: a terminal is the caller's own, or any where there are no others") {
  Scene s;
  Fd master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  REQUIRE(master);
  REQUIRE(::grantpt(master.get()) == 0);
  REQUIRE(::unlockpt(master.get()) == 0);
  const std::string name = ::ptsname(master.get());
  struct stat info {};
  REQUIRE(::stat(name.c_str(), &info) == 0);
  CHECK(says(s.judge(name, O_RDWR), "is a device"));
  s.rules.terminal = info.st_rdev;
  CHECK(s.passes(name, O_RDWR));
  s.rules.terminal = info.st_rdev + 1;
  CHECK_FALSE(s.passes(name, O_RDWR));
  s.rules.terminal.reset();
  CHECK(s.passes(name, O_RDWR));
  CHECK_FALSE(s.passes("/dev/zero"));
  // The controlling one of a process is what the kernel says it is.
  const pid_t child = ::fork();
  if (child == 0) {
    ::setsid();
    const bool none = terminal_of(::getpid()) == 0;
    const int own = ::open(name.c_str(), O_RDWR);
    ::_exit(own >= 0 && none && terminal_of(::getpid()) == info.st_rdev ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(terminal_of(1 << 23) == 0);
}

TEST_CASE("streams: the one that is refused is named as in a submit description") {
  const Scene s;
  const char* const names[] = {"standard input (`input`, `+In`)", "standard output (`output`, `+Out`)",
                               "standard error (`error`, `+Err`)"};
  for (std::size_t bad = 0; bad < 3; ++bad) {
    std::vector<Fd> streams;
    for (std::size_t i = 0; i < 3; ++i)
      streams.push_back(open_file(i == bad ? "/dev/zero" : "/dev/null", O_RDONLY).value());
    const auto judged = judge_streams(streams, s.rules);
    REQUIRE_FALSE(judged.ok());
    CHECK(says(judged.error().message(), std::string("the job's ") + names[bad] + " is refused: /dev/zero"));
  }
}
