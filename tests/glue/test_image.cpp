// Images whose links lead elsewhere, and whose environment means something to the programs in it.
#include <doctest/doctest.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "lib/base/file.hpp"
#include "tests/glue/fake_agent.hpp"
#include "tests/glue/instead.hpp"

using namespace glidepod;
using namespace glidepod::glue::testing;
namespace fs = std::filesystem;

namespace {

// A volume that the containers of the pod share.
struct Volume {
  Volume() {
    REQUIRE((::mkdir("/shared", 0755) == 0 || errno == EEXIST));
    REQUIRE(::mount("tmpfs", "/shared", "tmpfs", 0, "mode=711") == 0);
    REQUIRE(replace_file("/shared/passwd", "root:x:0:0:::\n", 0644).ok());
    before_ = look();
  }
  ~Volume() { ::umount("/shared"); }
  Volume(Volume&&) = delete;
  bool is_as_before() const { return look() == before_; }

 private:
  // Names, owners, modes and sizes.
  static std::string look() {
    std::string all;
    const auto add = [&](const fs::path& path) {
      struct stat info {};
      REQUIRE(::lstat(path.c_str(), &info) == 0);
      all += fmt::format("{} {} {} {:o} {}\n", path.string(), info.st_uid, info.st_gid, info.st_mode,
                         S_ISDIR(info.st_mode) ? 0 : info.st_size);
    };
    add("/shared");
    for (const auto& entry : fs::recursive_directory_iterator("/shared")) add(entry.path());
    return all;
  }
  std::string before_;
};

// With openat2, and where a container runtime's filter does not know it.
const std::vector<std::function<void()>> k_kernels = {[] {},
                                                      [] { fail_system_call(SCMP_SYS(openat2), ENOSYS); },
                                                      [] { fail_system_call(SCMP_SYS(openat2), EPERM); }};

}  // namespace

TEST_CASE("image: links into a volume leave the volume as it was") {
  const Instead var("/var"), tmp("/tmp"), passwd("/etc/passwd"), group("/etc/group");
  const Volume volume;
  // The last one as another job would have it: changed while glue looks.
  fs::create_directory("/dev/shm/neighbour");
  fs::create_symlink("/shared", "/dev/shm/neighbour/next");
  for (const char* target : {"/shared", "/dev/shm/neighbour/next", "/dev/shm/neighbour"}) {
    for (const auto& kernel : k_kernels) {
      fs::create_symlink(target, "/var");
      fs::create_symlink(std::string(target) + "/new", "/tmp");
      fs::create_symlink("/shared/passwd", "/etc/passwd");
      fs::create_symlink("/shared/group", "/etc/group");
      {
        Session session({.prepare = kernel});
        for (int i = 0; i < 2; ++i) CHECK(session.agent.run({"/job", "exit", "0"}).clean);
      }
      CHECK(volume.is_as_before());
      CHECK_FALSE(fs::exists("/dev/shm/neighbour/tmp"));
      for (const char* link : {"/var", "/tmp", "/etc/passwd", "/etc/group"}) {
        CHECK(fs::is_symlink(link));
        fs::remove(link);
      }
    }
  }
  fs::remove_all("/dev/shm/neighbour");
}

TEST_CASE("image: a job's folder is put into no volume") {
  const Volume volume;
  Session session;
  auto launch = launch_of({"/job", "exit", "0"});
  for (const char* path : {"/shared/set", "/shared/new/set", "/shared"}) {
    launch.links = {{path, k_sandbox}};
    CHECK(session.agent.fail(launch).fault == wire::Fault::user);
  }
  CHECK(volume.is_as_before());
}

TEST_CASE("image: users and groups that are links into a store learn the job's name") {
  const Instead passwd("/etc/passwd"), group("/etc/group"), store("/store");
  for (const auto& kernel : k_kernels) {
    fs::create_directories("/store/0-users");
    for (const char* name : {"passwd", "group"}) {
      const std::string target = std::string("/store/0-users/") + name;
      // Files of a store are read-only.
      REQUIRE(replace_file(target, "root:x:0:0:root:/root:/bin/sh\n", 0444).ok());
      fs::create_symlink(target, std::string("/etc/") + name);
    }
    {
      Session session({.prepare = kernel});
      CHECK(session.output_of({"id", "-un"}) == "slot1\n");
      CHECK(session.output_of({"id", "-gn"}) == "slot1\n");
      auto another = launch_of({"id", "-un"});
      another.user_name = "slot2";
      another.uid = another.gid = k_user - 1;
      another.cwd = "/";
      CHECK(session.output_of(another) == "slot2\n");
    }
    struct stat info {};
    REQUIRE(::stat("/etc/passwd", &info) == 0);
    CHECK((info.st_mode & 07777) == 0444);
    for (const char* path : {"/etc/passwd", "/etc/group", "/store"}) fs::remove_all(path);
  }
}

TEST_CASE(
    "image: a root folder that is closed to root gets its /tmp, and files of users that were root's alone a "
    "reader") {
  const Instead tmp("/tmp"), passwd("/etc/passwd"), group("/etc/group");
  REQUIRE(replace_file("/etc/passwd", "root:x:0:0:::\n", 0600).ok());
  struct stat before {};
  REQUIRE(::stat("/", &before) == 0);
  REQUIRE(::chmod("/", 0555) == 0);
  {
    Session session;
    CHECK(session.output_of({"id", "-un"}) == "slot1\n");
    CHECK(session.output_of({"stat", "-c", "%a %u", "/tmp"}) == "1777 0\n");
    CHECK(session.output_of({"stat", "-c", "%a", "/"}) == "555\n");
    CHECK(session.output_of({"stat", "-c", "%a", "/etc/passwd"}) == "644\n");
  }
  REQUIRE(::chmod("/", before.st_mode & 07777) == 0);
}

TEST_CASE("image: a whole /etc that is a link, and a /var that leads elsewhere in the image") {
  const Instead etc("/etc"), system("/system"), var("/var");
  fs::create_directories("/system/etc");
  fs::create_symlink("/system/etc", "/etc");
  fs::create_symlink("../../system", "/var");
  Session session;
  CHECK(session.output_of({"id", "-un"}) == "slot1\n");
  CHECK(session.output_of({"stat", "-c", "%a %u", "/var/tmp"}) == "1777 0\n");
  const auto ended = session.agent.run(shell("echo x > /var/tmp/left"));
  CHECK(ended.files_removed == 1);
  CHECK_FALSE(fs::exists("/system/tmp/left"));
}

TEST_CASE("image: its environment is the job's, and means nothing to glue") {
  Session session(
      {.environment = {"GLIBC_TUNABLES=glibc.malloc.top_pad=0xfffffffffff", "MALLOC_TOP_PAD_=17592186044415",
                       "LD_LIBRARY_PATH=/nowhere", "GLIDEPOD_GRACE_SECONDS=x"}});
  // Static as well, with these settings a program ends before its main().
  CHECK(session.agent.run({"/job", "exit", "0"}).status.number == SIGSEGV);
  auto launch = launch_of({"/job", "exit", "3"});
  launch.environment = {"GLIBC_TUNABLES=", "MALLOC_TOP_PAD_=0"};
  CHECK(session.agent.run(launch).status == ExitStatus::exited(3));
  CHECK(session.end(SIGTERM) == ExitStatus::exited(143));
}

TEST_CASE("image: its environment scripts are read by its own shell where they take one") {
  const Instead scripts("/.singularity.d");
  fs::create_directories("/.singularity.d/env");
  REQUIRE(replace_file("/.singularity.d/env/90-environment.sh",
                       "if true; then export FROM_IMAGE=$(echo computed) BOTH=image; fi\nset -- lost\n", 0644)
              .ok());
  Session session;
  auto launch = launch_of({"/bin/sh", "-c", "echo $FROM_IMAGE $BOTH $1", "sh", "argument"});
  launch.environment.emplace_back("BOTH=job");
  CHECK(session.output_of(launch) == "computed job argument\n");
  CHECK(session.agent.run({"/bin/sh", "-c", "exit 7"}).status == ExitStatus::exited(7));
}

TEST_CASE("image: a link where its own /tmp is no folder is the user's fault") {
  const Instead tmp("/tmp");
  auto launch = launch_of({"/job", "exit", "0"});
  launch.links = {{"/tmp/x", k_sandbox}};
  SUBCASE("a link") {
    fs::create_symlink("/var", "/tmp");
  }
  SUBCASE("a file") {
    REQUIRE(replace_file("/tmp", "", 0644));
  }
  Session session;
  CHECK(session.agent.fail(launch).fault == wire::Fault::user);
}

TEST_CASE("image: it runs by itself as Apptainer would start it") {
  const Instead scripts("/.singularity.d");
  Session session;
  auto launch = launch_of({"", "-c", "echo shell $1", "sh", "one"});
  launch.runscript = true;
  CHECK(session.output_of(launch) == "shell one\n");
  fs::create_directories("/.singularity.d");
  REQUIRE(replace_file("/.singularity.d/runscript", "#!/bin/sh\necho runscript $3 $4\n", 0644).ok());
  launch.job += 1000;
  CHECK(session.output_of(launch) == "shell one\n");  // nobody may execute it
  fs::permissions("/.singularity.d/runscript", fs::perms(0755));
  launch.job += 1000;
  CHECK(session.output_of(launch) == "runscript sh one\n");
}
