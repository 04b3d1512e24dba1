#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/file.hpp"
#include "lib/base/log.hpp"
#include "lib/base/text.hpp"
#include "pilot-agent/agent.hpp"
#include "pilot-agent/drain.hpp"
#include "pilot-agent/settings.hpp"
#include "pilot-agent/status.hpp"
#include "pilot-agent/supervisor.hpp"
#include "pilot-agent/withdrawal.hpp"

using namespace glidepod;
using namespace glidepod::agent;

namespace {

constexpr int k_failed = 1;
constexpr int k_usage = 2;
// One that stands still for longer serves nobody: its jobs are vacated, and the kubelet starts it again.
constexpr Milliseconds k_longest_turn{120'000};
constexpr std::size_t k_longest_message = 4096;  // of a termination message, to Kubernetes

struct Options {
  std::string config_file = "/etc/glidepod/agent.conf";
  Config::Missing missing = Config::Missing::allowed;
  enum class What { run, help, version, check, status, settings, check_file, markdown } what = What::run;
  bool json = false;
  std::vector<std::string> keys;  // of settings: these alone
  std::string file;               // of settings --check
};

Result<Options> parse_arguments(const std::vector<std::string_view>& arguments) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto argument = arguments[i];
    if (argument == "status" && i == 0) {
      options.what = Options::What::status;
    } else if (argument == "settings" && i == 0) {
      options.what = Options::What::settings;
    } else if (argument == "--check" && options.what == Options::What::settings && i + 1 < arguments.size()) {
      options.what = Options::What::check_file;
      options.file = arguments[++i];
    } else if (argument == "--markdown" && options.what == Options::What::settings) {
      options.what = Options::What::markdown;
    } else if (!argument.starts_with('-') && options.what == Options::What::settings) {
      options.keys.emplace_back(argument);
    } else if (argument == "--json" && options.what == Options::What::status) {
      options.json = true;
    } else if (argument == "--help" || argument == "-h") {
      options.what = Options::What::help;
    } else if (argument == "--version") {
      options.what = Options::What::version;
    } else if (argument == "--check-config") {
      options.what = Options::What::check;
    } else if (argument == "--config" && i + 1 < arguments.size()) {
      options.config_file = arguments[++i];
      options.missing = Config::Missing::error;
    } else {
      return error("unknown argument '{}'; see --help", argument);
    }
  }
  return options;
}

void show_help(const Config& config) {
  ::printf(
      "usage: pilot-agent [--config FILE] [--check-config] [--help] [--version]\n"
      "       pilot-agent status [--json] [--config FILE]\n"
      "       pilot-agent settings [KEY...] [--config FILE] | --check FILE\n\n"
      "Runs HTCondor's jobs in the payload containers of its own Kubernetes pod. Reads\n"
      "/etc/glidepod/agent.conf, lines \"key = value\"; GLIDEPOD_KEY of the environment\n"
      "wins. `status` shows what the payload containers of a running pilot do:\n\n"
      "  kubectl exec POD -c pilot -- pilot-agent status\n\n"
      "`settings` shows each key with the value in force here, and where it comes from;\n"
      "`settings --check` tells all that is wrong in a file. Keys, with their defaults:\n\n%s\n"
      "Exit: 0 the pilot ended by itself or was told to; 1 something failed, see the log\n"
      "and the pod's termination message, or no pilot runs here (status), or the file is\n"
      "wrong (settings --check); 2 the command line or the configuration is wrong.\n",
      config.describe().c_str());
}

// What `kubectl describe pod` shows. Only where Kubernetes has put the file.
void leave_message(const std::string& path, const std::string& message) {
  if (const auto file = open_file(path, O_WRONLY | O_TRUNC)) (void)write_all(file.value(), message + "\n");
}

// The program once its configuration is known: agent, command, signals.
class Program {
 public:
  Program(Loop& loop, const Settings& settings) : loop_(loop), settings_(settings) {}

  // Until the pilot has ended.
  Result<void> run() {
    // libcurl and TLS may write to a connection that is closed already: an error to them, not a signal.
    TRY(loop_.on_signals({SIGTERM, SIGINT, SIGPIPE}, [this](const signalfd_siginfo& info) {
      on_signal(static_cast<int>(info.ssi_signo));
    }));
    agent_ = TRY(Agent::create(loop_, settings_));
    supervisor_.emplace(loop_, [this](ExitStatus status) { command_ended(status); });
    drain_.emplace(
        loop_, *supervisor_, [this](pid_t starter) { return agent_->has_begun(starter); },
        settings_.trouble_config, Drain::Times{});
    if (settings_.by_old_name())
      spdlog::warn("event=old_setting name=spares now=warm value={}", settings_.policy.spares);
    spdlog::info("event=listening exec_socket={} agent_socket={}", settings_.exec_socket,
                 settings_.agent_socket);
    if (!settings_.command_words().empty()) {
      start_timer_ = loop_.after(settings_.start_wait, [this] { not_ready(); });
      agent_->on_ready([this] { start_command(); });
    }
    agent_->on_give_up(
        {[this](const std::string& reason) { take_no_more(reason); }, [this] { end_as_failed(); }});
    agent_->on_unfit([this](const std::string& why) {
      loop_.cancel(start_timer_);
      fail(why);
    });
    withdrawal_ = TRY(Withdrawal::create(loop_, settings_.drained_file,
                                         [this](const std::string& reason) { withdraw(reason); }));
    TRY(loop_.run());
    agent_->finish();
    if (failure_) return *failure_;
    return {};
  }
  // Why it ended, where nothing failed.
  const std::string& ending() const { return ending_; }

 private:
  void on_signal(int number) {
    if (number == SIGPIPE) return;
    spdlog::info("event=stop signal={}", number);
    stopping_ = true;
    ending_ = fmt::format("the pilot was told to end by signal {}", number);
    loop_.cancel(start_timer_);
    end_command([this] { loop_.stop(); });
  }

  // A pilot that cannot switch a container would fail one job after another: it does not join.
  void not_ready() {
    // A kubelet that pulls for a container of a new pod does nothing else for that pod.
    if (agent_->expects_births() && !std::exchange(births_waited_for_, true)) {
      start_timer_ = loop_.after(settings_.policy.bind_deadline, [this] { not_ready(); });
      return;
    }
    spdlog::error("event=not_ready state={}", quoted(agent_->state()));
    const auto births = births_waited_for_ ? settings_.policy.bind_deadline : std::chrono::seconds(0);
    fail(fmt::format(
        "no payload container could be switched to another image within {} seconds: see the "
        "pilot's log{}",
        (settings_.start_wait + births).count(),
        agent_->has_sidecars() ? ". They are sidecars, which a kubelet before 1.32 does not start "
                                 "again when their image is changed"
                               : ""));
  }

  // The pool learns by the slots' ads; jobs that run may end.
  void take_no_more(const std::string& reason) {
    trouble_ = reason;
    leave_message(settings_.termination_log, reason);
    tell_condor(trouble_configuration(reason));
  }
  void tell_condor(const std::string& configuration) {
    if (settings_.trouble_config.empty() || !supervisor_->running()) return;
    const auto file = open_file(settings_.trouble_config, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    const auto written = file ? write_all(file.value(), configuration) : Result<void>(file.error());
    if (!written) return spdlog::warn("event=not_told reason={}", quoted(written.error().message()));
    supervisor_->reconfigure();
  }
  void end_as_failed() {
    end_command([this] { fail(trouble_); });
  }
  // By an operator: jobs that run end as they would, files and all; then the pilot does, and the pod has
  // succeeded.
  void withdraw(const std::string& reason) {
    if (stopping_ || !trouble_.empty()) return;
    spdlog::info("event=drained reason={}", quoted(reason));
    withdrawn_ = true;
    ending_ = "drained by an operator: " + reason;
    loop_.cancel(start_timer_);
    tell_condor(drained_configuration(reason));
    agent_->withdraw([this] { drain_->when_free([this] { end_withdrawn(); }); });
  }
  void end_withdrawn() {
    if (stopping_ || !trouble_.empty()) return;
    spdlog::info("event=free reason={}", quoted(ending_));
    leaves_ = true;
    end_command([this] { leave(); });
  }
  // Else `ended` says what then, at once.
  void end_command(const std::function<void()>& ended) {
    if (!supervisor_->running()) return ended();
    agent_->drain();
    drain_->begin(settings_.command_grace(agent_->pod_grace()));
  }

  void start_command() {
    loop_.cancel(start_timer_);
    if (stopping_ || started_ || withdrawn_) return;
    started_ = true;
    const auto spares = std::min(static_cast<std::size_t>(settings_.policy.spares), agent_->containers());
    const auto jobs = std::max<std::size_t>(agent_->containers() - spares, agent_->containers() > 0 ? 1 : 0);
    const auto started = supervisor_->start(settings_.command_words(), command_environment(environ, jobs));
    if (!started) fail(started.error().message());
  }

  void command_ended(ExitStatus status) {
    const std::string command = settings_.command_words().front();
    const std::string end =
        fmt::format("{} ended with {}", command.substr(command.rfind('/') + 1), status.to_string());
    if (!trouble_.empty()) return fail(trouble_);
    if (stopping_) return loop_.stop();
    if (leaves_) return leave();
    ending_ = end;
    if (status.success()) return leave();
    auto said = read_file(settings_.failure_file, k_longest_message);
    fail(said && !trim(*said).empty() ? std::string(trim(*said)) : end);
  }

  void leave() {
    agent_->leave([this](const auto& missing) { left(missing); });
  }

  void left(const std::vector<std::string>& missing) {
    if (missing.empty()) return agent_->finish([this](const auto& unended) { finished(unended); });
    fail(fmt::format("{}; payload containers that do not start: {}", ending_, fmt::join(missing, ", ")));
  }

  void finished(const std::vector<std::string>& unended) {
    // The pilot ended well, and its container says so; the pod would run on.
    if (unended.empty() && !agent_->others().empty()) return agent_->fail_pod([this] { loop_.stop(); });
    if (unended.empty()) return loop_.stop();
    fail(fmt::format("{}; payload containers that do not end: {}", ending_, fmt::join(unended, ", ")));
  }

  // Another pilot may fare better in another pod: this one ends, and says why.
  void fail(const std::string& reason) {
    failure_ = Error(reason);
    leave_message(settings_.termination_log, reason);
    agent_->fail_pod([this] { loop_.stop(); });
  }

  Loop& loop_;
  const Settings& settings_;
  std::unique_ptr<Agent> agent_;
  std::optional<Supervisor> supervisor_;
  std::optional<Drain> drain_;
  std::unique_ptr<Withdrawal> withdrawal_;
  Loop::TimerId start_timer_ = 0;
  bool started_ = false;
  bool births_waited_for_ = false;
  bool stopping_ = false;
  bool withdrawn_ = false;  // an operator has drained the pod
  bool leaves_ = false;     // and no job is left
  std::optional<Error> failure_;
  std::string trouble_;  // why it takes no more jobs
  std::string ending_;
};

int print(const std::string& text) {
  return ::fwrite(text.data(), 1, text.size(), stdout) == text.size() ? 0 : k_failed;
}

int complain(const Error& why, int code) {
  ::fprintf(stderr, "pilot-agent: %s\n", why.message().c_str());
  return code;
}

int show_status(const Settings& settings, bool json) {
  constexpr std::size_t k_longest_status = std::size_t{4} << 20;
  auto shown = read_file(settings.status_file, k_longest_status);
  if (!shown) shown = shown.error().in("no pilot runs here");
  if (shown && !json) shown = status_table(*shown, std::chrono::system_clock::now());
  return shown ? print(*shown) : complain(shown.error(), k_failed);
}

// Only the file: what the environment says beside it is not looked at.
int check_file(Config& config, const std::string& path) {
  const auto content = read_file(path, std::size_t{1} << 20);
  if (!content) return complain(content.error(), k_failed);
  const auto problems = config.problems(*content, path);
  if (problems.empty()) return print(path + ": nothing is wrong\n");
  (void)print(fmt::format("{}\n", fmt::join(problems, "\n")));
  return k_failed;
}

int fail(const Settings& settings, const Error& why, int code) {
  spdlog::critical("event=failed reason={}", quoted(why.message()));
  leave_message(settings.termination_log, why.message());
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  start_log("pilot-agent");
  Settings settings;
  Config config("GLIDEPOD_");
  settings.declare(config);
  const auto options = parse_arguments({argv + (argc > 0 ? 1 : 0), argv + argc});
  if (!options) return complain(options.error(), k_usage);
  if (options->what == Options::What::help) return show_help(config), 0;
  if (options->what == Options::What::version)
    return ::puts("pilot-agent " GLIDEPOD_VERSION) < 0 ? k_failed : 0;
  if (options->what == Options::What::markdown) return print(settings_page());
  if (options->what == Options::What::check_file) return check_file(config, options->file);
  auto read = config.read_file(options->config_file, options->missing);
  if (read) read = config.read_environment(environ);
  if (options->what == Options::What::settings) {
    if (!read) return complain(read.error(), k_usage);
    const auto shown = config.in_force(options->keys);
    return shown ? print(*shown) : complain(shown.error(), k_usage);
  }
  if (!read) return fail(settings, read.error(), k_usage);
  if (options->what == Options::What::check) return ::puts("the configuration is valid") < 0 ? k_failed : 0;

  if (options->what == Options::What::status) return show_status(settings, options->json);

  auto loop = Loop::create();
  if (!loop) return fail(settings, loop.error(), k_failed);
  loop->end_if_stuck_for(k_longest_turn);
  Program program(*loop, settings);
  const auto done = program.run();
  if (!done && done.error().fact<ServedAlready>()) {  // whose pod this is says how it ends
    return complain(done.error(), k_failed);
  }
  if (!done) return fail(settings, done.error(), k_failed);
  spdlog::info("event=finished reason={}", quoted(program.ending()));
  leave_message(settings.termination_log, program.ending());
  return 0;
}
