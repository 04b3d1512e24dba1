// Also holds main: outside it starts itself once more in new namespaces, inside it runs the tests as their
// PID 1, so that nothing that a test starts outlives it.
#define DOCTEST_CONFIG_IMPLEMENT
#include "tests/glue/isolation.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string_view>

#include "lib/base/file.hpp"

namespace glidepod::glue::testing {

namespace {

constexpr int k_skipped = 77;
const std::string k_root = "/tmp";  // covered by a file system in memory, for this process only

Result<void> mount_at(const char* source, const std::string& target, const char* type, unsigned long flags,
                      const char* options = nullptr) {
  ::mkdir(target.c_str(), 0755);
  if (::mount(source, target.c_str(), type, flags, options) != 0) return Error::system("mount {}", target);
  return {};
}

// Folders of programs and libraries: links on a merged-/usr system, else folders.
Result<void> take_system_folder(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return {};
  if (S_ISLNK(info.st_mode)) {
    char target[4096] = {};
    if (::readlink(path.c_str(), target, sizeof target - 1) < 0) return Error::system("read {}", path);
    if (::symlink(target, (k_root + path).c_str()) != 0) return Error::system("link {}", path);
    return {};
  }
  TRY(mount_at(path.c_str(), k_root + path, nullptr, MS_BIND | MS_REC));
  return mount_at(path.c_str(), k_root + path, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY);
}

Result<void> make_device(const std::string& path) {
  TRY(replace_file(k_root + path, "", 0644));
  return mount_at(path.c_str(), k_root + path, nullptr, MS_BIND);
}

Result<void> make_root() {
  const std::string glue = TRY(read_file(GLUE_PROGRAM, std::size_t{64} << 20));
  const std::string job = TRY(read_file(JOB_PROGRAM, std::size_t{64} << 20));
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return Error::system("private mounts");
  TRY(mount_at("tmpfs", k_root, "tmpfs", 0, "mode=755"));
  for (const char* path : {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"})
    TRY(take_system_folder(path));
  TRY(mount_at("proc", k_root + "/proc", "proc", 0));
  TRY(mount_at("tmpfs", k_root + "/dev", "tmpfs", 0, "mode=755"));
  for (const char* path : {"/dev/null", "/dev/zero", "/dev/urandom", "/dev/tty"}) TRY(make_device(path));
  TRY(mount_at("devpts", k_root + "/dev/pts", "devpts", 0, "newinstance,ptmxmode=0666,mode=0620,gid=5"));
  if (::symlink("pts/ptmx", (k_root + "/dev/ptmx").c_str()) != 0) return Error::system("link /dev/ptmx");
  TRY(mount_at("tmpfs", k_root + "/dev/shm", "tmpfs", 0, "mode=1777"));
  TRY(mount_at("mqueue", k_root + "/dev/mqueue", "mqueue", 0));
  for (const char* path : {"/etc", "/glidepod", "/glidepod/bin", "/glidepod/scratch"})
    ::mkdir((k_root + path).c_str(), 0755);
  ::mkdir((k_root + "/glidepod/run").c_str(), 0700);
  TRY(replace_file(k_root + "/etc/passwd", "root:x:0:0:root:/root:/bin/sh\n", 0644));
  TRY(replace_file(k_root + "/glidepod/bin/glue", glue, 0555));
  TRY(replace_file(k_root + "/job", job, 0755));
  const std::string sandbox = k_root + k_sandbox;
  ::mkdir(sandbox.c_str(), 0700);
  if (::chown(sandbox.c_str(), k_user, k_user) != 0) return Error::system("chown {}", sandbox);
  if (::chroot(k_root.c_str()) != 0 || ::chdir("/") != 0) return Error::system("chroot");
  return {};
}

}  // namespace

std::string enter_isolation() {
  const auto made = make_root();
  return made ? "" : made.error().message();
}

namespace {

int skip(const std::string& why) {
  std::fprintf(stderr, "skipped: %s\n", why.c_str());
  return k_skipped;
}

int run_isolated(doctest::Context& context) {
  if (::geteuid() != 0) return skip("needs root, to become other users and to make namespaces");
  if (::unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWPID) != 0)
    return skip(std::string("cannot make namespaces: ") + std::strerror(errno));
  const pid_t inside = ::fork();
  if (inside == 0) {
    // Whoever ends the tests ends all that they have started.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const std::string why = enter_isolation();
    if (!why.empty()) ::_exit(skip(why));
    const int code = context.run();
    std::fflush(nullptr);
    ::_exit(code);
  }
  int status = 0;
  ::waitpid(inside, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace

}  // namespace glidepod::glue::testing

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    // The build asks for the list of tests; that needs no isolation.
    if (argument.starts_with("-l") || argument.starts_with("--list") || argument.starts_with("--no-run"))
      return context.run();
  }
  return glidepod::glue::testing::run_isolated(context);
}
