#include "pilot-agent/apptainer/ssh.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "lib/base/child.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text.hpp"
#include "lib/wire/channel.hpp"
#include "lib/wire/socket.hpp"

namespace glidepod::apptainer {

namespace {

// Of the pilot container: no payload container sees it.
constexpr const char* k_folders = "/tmp/glidepod-ssh.XXXXXX";
constexpr const char* k_keygen = "/usr/bin/ssh-keygen";
constexpr const char* k_sshd = "/usr/sbin/sshd";
constexpr const char* k_shell = "/usr/libexec/glidepod/job-shell";
constexpr Milliseconds k_end_patience{1000};
constexpr Milliseconds k_ended_patience{500};
constexpr Milliseconds k_refused_patience{10000};
// The job's own may hold anything, LD_PRELOAD included.
const std::vector<std::string> k_environment = {"PATH=/usr/sbin:/usr/bin"};

std::string section(std::string_view name, std::string_view text) {
  return fmt::format("condor_ssh_to_job_sshd_setup {0} BEGIN\n{1}\ncondor_ssh_to_job_sshd_setup {0} END\n",
                     name, trim(text));
}

Result<std::string> make_folder() {
  std::string folder = k_folders;
  if (::mkdtemp(folder.data()) == nullptr) return Error::system("make {}", folder);
  return folder;
}

Result<void> make_key(const std::string& file) {
  const Fd null = TRY(open_file("/dev/null", O_RDWR));
  auto keygen = TRY(Child::spawn({.argv = {k_keygen, "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", file},
                                  .environment = k_environment,
                                  .stdin_fd = null.get(),
                                  .stdout_fd = null.get()}));
  const auto ended = TRY(keygen.wait());
  if (!ended.status.success()) return error("{}: {}", k_keygen, ended.status.to_string());
  return {};
}

Result<std::string> set_up(const std::vector<std::string>& arguments) {
  if (arguments.size() < 3 || !arguments[0].starts_with('/'))
    return error("expected SANDBOX, SHELL_SETUP and CONFIG");
  const auto user = user_of(TRY(read_file("/etc/passwd")), ::getuid());
  if (!user) return error("user {} has no name", ::getuid());
  const std::string folder = TRY(make_folder());
  const std::string key = folder + "/key";
  TRY(make_key(key));
  const std::string public_key = TRY(read_file(key + ".pub"));
  TRY(replace_file(folder + "/authorized_keys", authorized_key(arguments[0], public_key), 0600));
  TRY(replace_file(folder + "/sshd_config", sshd_config(folder, TRY(read_file(arguments[2]))), 0600));
  TRY(replace_file(folder + "/sandbox", arguments[0], 0600));
  return section("SSHD USER", user.value()) + section("SSHD DIR", folder) +
         section("PUBLIC SERVER KEY", public_key) + section("AUTHORIZED CLIENT KEY", TRY(read_file(key))) +
         "condor_ssh_to_job_sshd_setup SUCCESS\n";
}

// An empty folder in the sandbox, there while a session is, of the name that HTCondor's script gives its own:
// the placeholder that `condor_submit -i` runs as the job lasts as long as the first of them.
class Mark {
 public:
  explicit Mark(const std::string& sandbox) {
    for (int number = 1; number <= k_most_marks && path_.empty(); ++number) {
      const std::string path = fmt::format("{}/.condor_ssh_to_job_{}", sandbox, number);
      if (::mkdir(path.c_str(), 0700) == 0)
        path_ = path;
      else if (errno != EEXIST)
        return;
    }
  }
  ~Mark() {
    if (!path_.empty()) ::rmdir(path_.c_str());
  }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

 private:
  static constexpr int k_most_marks = 1000;
  std::string path_;
};

// An sshd and the agent's word that its job has ended, whichever comes first.
class Watched {
 public:
  explicit Watched(Loop loop) : loop_(std::move(loop)) {}

  Result<int> run(const std::vector<std::string>& arguments, const std::string& sandbox,
                  const std::string& agent_socket) {
    TRY(loop_.on_signals({SIGTERM, SIGINT, SIGHUP, SIGQUIT}, [this](const signalfd_siginfo&) { end(); }));
    Fd connection = TRY(wire::connect_to(agent_socket));
    agent_ = TRY(wire::Channel::create(
        loop_, std::move(connection),
        {[this](const wire::Frame& frame) { on_frame(frame); }, [this](const Error&) { end(); }}));
    TRY(agent_->send(wire::Enter{.what = wire::Enter::What::watch, .sandbox = sandbox, .request = {}}));
    std::vector<std::string> argv{k_sshd};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    sshd_ = std::make_unique<Child>(
        TRY(Child::spawn({.argv = argv, .environment = k_environment, .parent_death_signal = SIGKILL})));
    TRY(loop_.watch(sshd_->pidfd().get(), EPOLLIN, [this](std::uint32_t) { loop_.stop(); }));
    // Theirs is the connection to the user; sshd's end must be its end.
    ::close(STDIN_FILENO);
    ::close(STDOUT_FILENO);
    TRY(loop_.run());
    loop_.forget(sshd_->pidfd().get());
    const auto ended = TRY(sshd_->wait());
    return ended.status.how == ExitStatus::How::exited ? ended.status.number : 128 + ended.status.number;
  }

 private:
  void on_frame(const wire::Frame& frame) {
    // A session says by itself why it ends, in words, if sshd is given the time; other uses of the connection
    // do not end by themselves.
    loop_.after(frame.type == wire::Type::ended ? k_ended_patience : k_refused_patience, [this] { end(); });
  }

  void end() {
    if (ending_) return;
    ending_ = true;
    (void)sshd_->signal(SIGTERM);
    loop_.after(k_end_patience, [this] { (void)sshd_->signal(SIGKILL); });
  }

  Loop loop_;
  std::unique_ptr<wire::Channel> agent_;
  std::unique_ptr<Child> sshd_;
  bool ending_ = false;
};

Result<int> watch_sshd(const std::vector<std::string>& arguments, const std::string& agent_socket) {
  const auto option = std::ranges::find(arguments, "-f");
  if (option == arguments.end() || option + 1 == arguments.end()) return error("no -f FILE");
  const std::string& file = *(option + 1);
  const std::string sandbox = TRY(read_file(file.substr(0, file.rfind('/')) + "/sandbox"));
  const Mark mark(sandbox);
  Watched watched(TRY(Loop::create()));
  return watched.run(arguments, sandbox, agent_socket);
}

int fail(int fd, const Error& reason) {
  [[maybe_unused]] const auto written =
      ::dprintf(fd, "condor_ssh_to_job: %s\n", one_line(reason.message()).c_str());
  return 1;
}

}  // namespace

std::optional<std::string> user_of(std::string_view passwd, uid_t uid) {
  for (const auto& line : split(passwd, '\n')) {
    const auto parts = split(line, ':');
    if (parts.size() > 2 && parts[2] == std::to_string(uid)) return parts[0];
  }
  return std::nullopt;
}

std::string sshd_config(const std::string& folder, std::string_view rest) {
  return fmt::format("HostKey {0}/key\nAuthorizedKeysFile {0}/authorized_keys\n{1}", folder, rest);
}

std::string authorized_key(const std::string& sandbox, std::string_view public_key) {
  return fmt::format("command=\"{} {}\" {}\n", k_shell, sandbox, trim(public_key));
}

int set_up_sshd(const std::vector<std::string>& arguments) {
  ::umask(077);
  const auto answer = set_up(arguments);
  // Whatever is printed without SUCCESS is shown to the user.
  if (!answer) return fail(STDOUT_FILENO, answer.error());
  const Fd out(::dup(STDOUT_FILENO));
  return write_all(out, answer.value()) ? 0 : 1;
}

int run_sshd(const std::vector<std::string>& arguments, const std::string& agent_socket) {
  const auto code = watch_sshd(arguments, agent_socket);
  return code ? code.value() : fail(STDERR_FILENO, code.error());
}

}  // namespace glidepod::apptainer
