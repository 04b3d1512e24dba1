#include "glue/server.hpp"

#include <malloc.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "glue/cleanup.hpp"
#include "glue/events.hpp"
#include "glue/processes.hpp"
#include "lib/base/text.hpp"

namespace glidepod::glue {

namespace {

// A process that cannot be killed (it hangs in the kernel) makes the container unclean after this time.
constexpr Milliseconds k_end_limit = std::chrono::seconds(10);
constexpr int k_exit_terminated = 143;

std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * 1'000'000'000L + now.tv_nsec;
}

std::int64_t microseconds(const timeval& time) {
  return time.tv_sec * 1'000'000L + time.tv_usec;
}

// A job as the log names it: in HTCondor's words, which the agent gives.
std::string name_of(const wire::Launch& launch) {
  if (launch.about.empty()) return fmt::format("job={}", launch.job);
  return one_line(launch.about, 1000);
}

}  // namespace

Server::Server(Loop& loop, ServerOptions options)
    : loop_(loop),
      options_(std::move(options)),
      link_(loop, options_.run_directory, options_.container,
            {[this](wire::Frame frame) { on_frame(std::move(frame)); }, [this] { on_agent_lost(); },
             [this](const Error& error) {
               failure_ = error;
               loop_.stop();
             }}) {}

Result<int> Server::run() {
  TRY(loop_.on_signals({SIGCHLD, SIGTERM, SIGINT}, [this](const signalfd_siginfo& info) {
    on_process_signal(static_cast<int>(info.ssi_signo));
  }));
  TRY(link_.start());
  // After Hello: the agent has enough to do meanwhile.
  filter_ = TRY(Filter::build());
  ::malloc_trim(0);
  TRY(loop_.run());
  if (failure_) return *failure_;
  return leaving_.value_or(0);
}

void Server::on_frame(wire::Frame frame) {
  const auto handle = [&]<typename Message>(void (Server::*handler)(const Message&)) {
    const auto message = frame.decode<Message>();
    return message ? (this->*handler)(message.value()) : link_.drop(message.error().message());
  };
  switch (frame.type) {
    case wire::Type::launch: {
      auto launch = frame.decode<wire::Launch>();
      if (!launch) return link_.drop(launch.error().message());
      return on_launch(std::move(launch).value(), frame.fds);
    }
    case wire::Type::open_session: {
      const auto message = frame.decode<wire::OpenSession>();
      if (!message) return link_.drop(message.error().message());
      return on_open_session(message.value(), frame.fds);
    }
    case wire::Type::close_session:
      return handle(&Server::on_close_session);
    case wire::Type::signal:
      return handle(&Server::on_signal);
    case wire::Type::finish:
      return on_finish();
    default:
      return link_.drop(fmt::format("a message of type {}", static_cast<std::uint32_t>(frame.type)));
  }
}

void Server::on_launch(wire::Launch launch, const std::vector<Fd>& fds) {
  const auto refuse_with = [&](wire::Fault fault, const std::string& message) {
    say("launch refused {} reason={}", name_of(launch), value(message));
    link_.send(wire::LaunchFailed{launch.job, fault, message});
  };
  if (leaving_) return refuse_with(wire::Fault::infrastructure, "the container is about to end");
  if (job_) return refuse_with(wire::Fault::infrastructure, "another job runs in this container");
  if (unclean_)
    return refuse_with(wire::Fault::infrastructure, "an earlier job could not be cleaned up here");
  const auto refusal = refuse(launch, fds.size());
  if (!refusal.message.empty()) return refuse_with(refusal.fault, refusal.message);
  job_.emplace();
  job_->launch = std::move(launch);
  job_->account.job = job_->launch.job;
  if (const auto failure = begin(fds)) fail_launch(*failure);
}

std::optional<LaunchFailure> Server::begin(const std::vector<Fd>& fds) {
  wire::Fault fault{};
  const auto linked = job_->links.make(job_->launch.links, options_.scratch_directory, &fault);
  if (!linked) return LaunchFailure{fault, linked.error().message()};
  prepare_image(job_->launch);
  job_->account.started_ns = now_ns();
  auto launched = start(job_->launch, fds, *filter_);
  if (!launched) return LaunchFailure{wire::Fault::infrastructure, launched.error().message()};
  job_->main = std::move(launched).value();
  const auto watched = loop_.watch(job_->main.report.get(), EPOLLIN, [this](std::uint32_t) { on_report(); });
  if (!watched) return LaunchFailure{wire::Fault::infrastructure, watched.error().message()};
  return std::nullopt;
}

void Server::on_report() {
  ChildReport report;
  const ssize_t got = ::read(job_->main.report.get(), &report, sizeof report);
  if (got < 0) return;
  close_report();
  if (got == sizeof report)
    return fail_launch(explain(report, job_->launch, job_->main.candidates, options_.scratch_directory));
  job_->started = true;
  link_.send(wire::Started{job_->launch.job, job_->main.pid});
  say("job started {} pid={} uid={} program={}", name_of(job_->launch), job_->main.pid, job_->launch.uid,
      value(job_->launch.argv[0]));
}

void Server::close_report() {
  loop_.forget(job_->main.report.get());
  job_->main.report.reset();
}

void Server::fail_launch(const LaunchFailure& failure) {
  if (job_->main.report) close_report();
  // The child, if it came to that, is at its _exit: an instant.
  if (job_->main.pid > 0 && !job_->status) ::waitpid(job_->main.pid, nullptr, 0);
  say("launch failed {} fault={} reason={}", name_of(job_->launch),
      failure.fault == wire::Fault::user ? "user" : "infrastructure", value(failure.message));
  link_.send(wire::LaunchFailed{job_->launch.job, failure.fault, failure.message});
  job_.reset();
  if (leaving_) leave(*leaving_);
}

void Server::on_signal(const wire::Signal& signal) {
  // Of a job that has just ended: its JobEnded is on the way to the agent.
  if (!job_ || job_->launch.job != signal.job) return;
  if (signal.number <= 0 || signal.number >= NSIG) return;
  say("signal {} number={}", name_of(job_->launch), signal.number);
  switch (signal.number) {
    case SIGKILL:
      return end_job();
    case SIGSTOP:
    case SIGTSTP:
    case SIGCONT:
      job_->suspended = signal.number != SIGCONT;
      return signal_descendants(signal.number);
    default:
      signal_main(signal.number);
  }
}

// Not yet reaped, so the pid is still its own; and never kill(-1).
void Server::signal_main(int number) {
  if (job_->main.pid > 0 && !job_->status) ::kill(job_->main.pid, number);
}

void Server::on_finish() {
  if (job_) end_job();
  leave(0);
}

void Server::on_agent_lost() {
  if (!job_) return;
  say("no agent to report to, ending the job {}", name_of(job_->launch));
  end_job();
}

void Server::on_process_signal(int number) {
  if (number != SIGCHLD) return on_terminate(number);
  reap_children();
  if (job_ && job_->status) end_job();
}

void Server::on_terminate(int number) {
  if (leaving_) return;
  say("asked to end signal={}", number);
  // Before the job's end: however it ends now, the agent knows that it was made to.
  link_.send(wire::Goodbye{"SIGTERM"});
  if (!job_) return leave(k_exit_terminated);
  leaving_ = k_exit_terminated;
  signal_main(SIGTERM);
  if (job_->suspended) signal_descendants(SIGCONT);
  loop_.after(options_.grace, [this] {
    if (job_) end_job();
  });
}

bool Server::reap_children() {
  return reap([this](pid_t pid, int status, const rusage& usage) { account_for(pid, status, usage); });
}

void Server::account_for(pid_t pid, int status, const rusage& usage) {
  if (!job_) return;
  auto& account = job_->account;
  account.user_microseconds += microseconds(usage.ru_utime);
  account.system_microseconds += microseconds(usage.ru_stime);
  account.max_rss_kib = std::max<std::int64_t>(account.max_rss_kib, usage.ru_maxrss);
  for (auto& [id, session] : job_->sessions)
    if (session.supervisor == pid) session.supervisor = -1;
  if (pid != job_->main.pid) return;
  account.ended_ns = now_ns();
  job_->status = ExitStatus::from_wait(status);
}

void Server::end_job() {
  // The main process may have ended before its report was looked at.
  if (job_->main.report && job_->status) on_report();
  if (!job_) return;
  const Ending ending = end_descendants(
      k_end_limit, [this](pid_t pid, int status, const rusage& usage) { account_for(pid, status, usage); });
  if (job_->main.report) on_report();
  if (!job_) return;
  forget_sessions();
  const Cleaned cleaned = clean_after(user_of(job_->launch));
  job_->links.undo();
  auto& account = job_->account;
  account.status = job_->status.value_or(ExitStatus::signaled(SIGKILL));
  if (account.ended_ns == 0) account.ended_ns = now_ns();
  account.processes_killed = ending.killed;
  account.files_removed = cleaned.removed;
  account.clean = ending.complete && cleaned.complete;
  unclean_ |= !account.clean;
  link_.send(account);
  say("job ended {} status={} killed={} removed={} clean={}", name_of(job_->launch),
      value(account.status.to_string()), account.processes_killed, account.files_removed, account.clean);
  job_.reset();
  ::malloc_trim(0);
  if (leaving_) leave(*leaving_);
}

void Server::leave(int exit_code) {
  leaving_ = exit_code;
  link_.flush();
  say("exiting code={}", exit_code);
  loop_.stop();
}

}  // namespace glidepod::glue
