#include "pilot-agent/lending.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "tests/temporary_folder.hpp"

using namespace glidepod;
using namespace glidepod::agent;
namespace fs = std::filesystem;

namespace {

constexpr uid_t k_pilot = 20001, k_inner = 100001, k_other = 100002, k_stranger = 20002;
constexpr gid_t k_family = 100000;

// dir_1 is the pilot job's sandbox; execute/dir_2 in it that of its job.
struct Tree {
  TemporaryFolder own;
  const std::string scratch = own.path + "/scratch", sandbox = scratch + "/dir_1",
                    folder = sandbox + "/execute/dir_2";
  Lent lent{scratch, sandbox, folder, k_pilot, k_pilot, k_inner, k_family, {k_pilot}};

  Tree() {
    REQUIRE(::chmod(own.path.c_str(), 0755) == 0);
    fs::create_directories(folder);
    write("token", "secret", 0600);
    write("execute/dir_2/input", "in", 0600);
    write("execute/dir_2/program", "#!", 0700);
    for (const auto& path : {sandbox, sandbox + "/execute", folder}) {
      REQUIRE(::chown(path.c_str(), k_pilot, k_pilot) == 0);
      REQUIRE(::chmod(path.c_str(), 0700) == 0);
    }
  }
  void write(const std::string& name, const std::string& text, mode_t mode, uid_t owner = k_pilot) const {
    const std::string path = sandbox + "/" + name;
    std::ofstream(path) << text;
    REQUIRE(::chown(path.c_str(), owner, owner) == 0);
    REQUIRE(::chmod(path.c_str(), mode) == 0);
  }
  uid_t owner_of(const std::string& name) const {
    struct stat info {};
    REQUIRE(::lstat((sandbox + "/" + name).c_str(), &info) == 0);
    return info.st_uid;
  }
};

// Whether this works as that user.
bool as(uid_t uid, const std::vector<gid_t>& groups, const std::function<bool()>& act) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgroups(groups.size(), groups.data()) != 0 || ::setgid(uid) != 0 || ::setuid(uid) != 0)
      ::_exit(9);
    ::_exit(act() ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) != 9);
  return WEXITSTATUS(status) == 0;
}
bool opens(uid_t uid, const std::string& path, int flags) {
  return as(uid, {k_family}, [&] { return ::open(path.c_str(), flags, 0666) >= 0; });
}

}  // namespace

TEST_CASE("lending: both users work in the folder, and it goes back to its owner") {
  if (::getuid() != 0) return;
  const Tree tree;
  const std::string input = tree.folder + "/input", made = tree.folder + "/made";
  CHECK_FALSE(opens(k_inner, input, O_RDONLY));
  REQUIRE(lend(tree.lent).ok());
  CHECK(opens(k_inner, input, O_RDWR));
  CHECK(opens(k_pilot, input, O_RDWR));
  CHECK(as(k_inner, {k_family}, [&] { return ::access((tree.folder + "/program").c_str(), X_OK) == 0; }));
  CHECK_FALSE(as(k_inner, {k_family}, [&] { return ::access(input.c_str(), X_OK) == 0; }));
  CHECK(opens(k_inner, made, O_CREAT | O_EXCL | O_WRONLY));
  CHECK(opens(k_pilot, tree.folder + "/later", O_CREAT | O_EXCL | O_WRONLY));
  CHECK(opens(k_inner, tree.folder + "/later", O_RDWR));
  CHECK(as(k_inner, {k_family}, [&] {
    const std::string deep = tree.folder + "/deep";
    return ::mkdir(deep.c_str(), 0000) == 0 && ::chmod(deep.c_str(), 0700) == 0 &&
           ::open((deep + "/file").c_str(), O_CREAT | O_WRONLY, 0000) >= 0 &&
           ::chmod(deep.c_str(), 0000) == 0;
  }));
  REQUIRE(take_back(tree.lent).ok());
  for (const char* name : {"made", "later", "deep", "deep/file", "input"})
    CHECK(tree.owner_of(std::string("execute/dir_2/") + name) == k_pilot);
}

TEST_CASE("lending: nobody else, and nothing else") {
  if (::getuid() != 0) return;
  const Tree tree;
  tree.write("public", "x", 0644);
  tree.write("execute/dir_2/open", "x", 0666);
  REQUIRE(::chmod(tree.folder.c_str(), 0755) == 0);
  REQUIRE(lend(tree.lent).ok());
  // Of the pilot job's own files its job sees only what anybody may, and only by name.
  CHECK_FALSE(opens(k_inner, tree.sandbox + "/token", O_RDONLY));
  CHECK_FALSE(opens(k_inner, tree.sandbox, O_RDONLY | O_DIRECTORY));
  CHECK_FALSE(opens(k_inner, tree.sandbox + "/new", O_CREAT | O_WRONLY));
  CHECK_FALSE(opens(k_inner, tree.sandbox + "/execute/new", O_CREAT | O_WRONLY));
  // Another job of the same pilot, and one of another slot.
  CHECK_FALSE(opens(k_other, tree.folder + "/open", O_RDONLY));
  CHECK_FALSE(opens(k_other, tree.folder, O_RDONLY | O_DIRECTORY));
  CHECK_FALSE(as(k_stranger, {}, [&] { return ::access((tree.sandbox + "/public").c_str(), F_OK) == 0; }));
}

TEST_CASE("lending: what is not the owner's is left alone, and no link is followed") {
  if (::getuid() != 0) return;
  const Tree tree;
  fs::create_directories(tree.scratch + "/dir_9");
  std::ofstream(tree.scratch + "/dir_9/victim") << "x";
  REQUIRE(::chown((tree.scratch + "/dir_9/victim").c_str(), k_stranger, k_stranger) == 0);
  REQUIRE(::chmod((tree.scratch + "/dir_9/victim").c_str(), 0600) == 0);
  tree.write("execute/dir_2/strange", "x", 0600, k_stranger);
  fs::create_symlink(tree.scratch + "/dir_9/victim", tree.folder + "/link");
  fs::create_directory_symlink(tree.scratch + "/dir_9", tree.folder + "/links");
  fs::create_hard_link(tree.scratch + "/dir_9/victim", tree.folder + "/hard");
  REQUIRE(::mkfifo((tree.folder + "/pipe").c_str(), 0600) == 0);
  REQUIRE(::chown((tree.folder + "/pipe").c_str(), k_pilot, k_pilot) == 0);
  fs::create_hard_link(tree.sandbox + "/token", tree.folder + "/token");
  REQUIRE(lend(tree.lent).ok());
  for (const char* name : {"strange", "link", "hard", "links/victim", "token"})
    CHECK_FALSE(opens(k_inner, tree.folder + "/" + name, O_RDONLY));
  REQUIRE(take_back(tree.lent).ok());
  CHECK(tree.owner_of("execute/dir_2/strange") == k_stranger);
  CHECK(tree.owner_of("execute/dir_2/hard") == k_stranger);
}

TEST_CASE("lending: only a folder of the owner's inside the pilot job's own") {
  if (::getuid() != 0) return;
  Tree tree;
  const auto refused = [&](const std::string& folder) {
    Lent lent = tree.lent;
    lent.folder = folder;
    return !lend(lent).ok();
  };
  fs::create_directories(tree.scratch + "/dir_9/mine");
  REQUIRE(::chown((tree.scratch + "/dir_9/mine").c_str(), k_pilot, k_pilot) == 0);
  fs::create_directories(tree.sandbox + "/execute/strange");
  fs::create_directory_symlink(tree.scratch + "/dir_9/mine", tree.sandbox + "/away");
  for (const std::string& folder :
       {std::string(), tree.sandbox, tree.sandbox + "/", tree.sandbox + "/.", tree.scratch,
        std::string("/tmp"), tree.scratch + "/dir_9/mine", tree.sandbox + "/../dir_9/mine",
        tree.sandbox + "/execute/..", tree.sandbox + "/away", tree.sandbox + "/execute/strange",
        tree.sandbox + "/absent", tree.sandbox + "/token", tree.sandbox + "x"}) {
    CAPTURE(folder);
    CHECK(refused(folder));
  }
  // A folder on the way that is somebody else's.
  fs::create_directories(tree.sandbox + "/execute/strange/mine");
  REQUIRE(::chown((tree.sandbox + "/execute/strange/mine").c_str(), k_pilot, k_pilot) == 0);
  CHECK(refused(tree.sandbox + "/execute/strange/mine"));
}

TEST_CASE("lending: who the job is stays the starter's word") {
  if (::getuid() != 0) return;
  const Tree tree;
  const std::string ad = tree.folder + "/.job.ad";
  tree.write("execute/dir_2/.job.ad", "User = \"carol@inner\"", 0600);
  tree.write("execute/dir_2/.machine.ad", "Disk = 1", 0600);
  fs::create_directories(tree.folder + "/sub");
  REQUIRE(::chown((tree.folder + "/sub").c_str(), k_pilot, k_pilot) == 0);
  REQUIRE(lend(tree.lent).ok());
  CHECK(opens(k_inner, ad, O_RDONLY));
  CHECK_FALSE(opens(k_inner, ad, O_WRONLY));
  CHECK_FALSE(opens(k_inner, tree.folder + "/.machine.ad", O_WRONLY));
  CHECK(opens(k_pilot, ad, O_RDWR));
  // It can put another in its place, and elsewhere, where the name means nothing.
  CHECK(as(k_inner, {k_family}, [&] {
    return ::unlink(ad.c_str()) == 0 && ::open(ad.c_str(), O_CREAT | O_WRONLY, 0644) >= 0 &&
           ::open((tree.folder + "/sub/.job.ad").c_str(), O_CREAT | O_WRONLY, 0644) >= 0;
  }));
  REQUIRE(take_back(tree.lent).ok());
  CHECK(tree.owner_of("execute/dir_2/.job.ad") == k_inner);
  CHECK(as(k_pilot, {}, [&] { return ::unlink(ad.c_str()) == 0; }));
  CHECK(tree.owner_of("execute/dir_2/.machine.ad") == k_pilot);
  CHECK(tree.owner_of("execute/dir_2/sub/.job.ad") == k_pilot);
}

TEST_CASE("lending: a program does not keep rights that were its maker's") {
  if (::getuid() != 0) return;
  const Tree tree;
  REQUIRE(lend(tree.lent).ok());
  const std::string program = tree.folder + "/suid";
  CHECK(as(k_inner, {k_family}, [&] {
    return ::open(program.c_str(), O_CREAT | O_WRONLY, 0755) >= 0 && ::chmod(program.c_str(), 06755) == 0;
  }));
  REQUIRE(take_back(tree.lent).ok());
  struct stat info {};
  REQUIRE(::stat(program.c_str(), &info) == 0);
  CHECK(info.st_uid == k_pilot);
  CHECK((info.st_mode & 06000) == 0);
}
