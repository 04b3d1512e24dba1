#include "glue/server.hpp"

#include <malloc.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <utility>

#include "glue/events.hpp"
#include "glue/reports.hpp"
#include "glue/stop_signal.hpp"
#include "lib/base/text.hpp"

namespace glidepod::glue {

namespace {

// How long a suspended job's processes are looked for.
constexpr Milliseconds k_signal_limit = std::chrono::seconds(2);
// How long the agent is waited for, which has HTCondor send the job's own signal when its container is
// stopped.
constexpr Milliseconds k_agent_limit = std::chrono::seconds(2);
constexpr int k_exit_terminated = 143;

std::int64_t microseconds(const timeval& time) {
  return time.tv_sec * 1'000'000L + time.tv_usec;
}

}  // namespace

std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * 1'000'000'000L + now.tv_nsec;
}

std::string name_of(const wire::Launch& launch) {
  if (launch.about.empty()) return fmt::format("job={}", launch.job);
  return one_line(launch.about, 1000);
}

Server::Server(Loop& loop, ServerOptions options)
    : loop_(loop),
      options_(std::move(options)),
      link_(loop, options_.run_directory, options_.container,
            {[this](wire::Frame frame) { on_frame(std::move(frame)); }, [this] { return on_agent_lost(); },
             [this](const Error& error) {
               failure_ = error;
               loop_.stop();
             }}) {}

Result<int> Server::run() {
  auto signals = stop_signals();
  signals.push_back(SIGCHLD);
  TRY(loop_.on_signals(signals, [this](const signalfd_siginfo& info) { on_process_signal(info); }));
  TRY(clear_own_shm());
  // Built after Hello was sent: meanwhile the agent has enough to do.
  filter_ = TRY(Filter::build());
  control_group_.emplace();
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
      if (const auto fit = check_launch(launch.value(), frame.fds.size()); !fit)
        return refuse(launch.value(), fault_of(fit.error()), fit.error().message());
      if (const auto fit = check_streams(frame.fds, options_.scratch_directory); !fit)
        return refuse(launch.value(), fault_of(fit.error()), fit.error().message());
      return take_on(std::move(launch).value(), std::move(frame.fds));
    }
    case wire::Type::clear: {
      const auto clear = frame.decode<wire::Clear>();
      if (!clear) return link_.drop(clear.error().message());
      wire::Launch nothing;
      nothing.job = clear->job;
      nothing.uid = clear->uid;
      nothing.gid = clear->gid;
      return take_on(std::move(nothing), {});
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
    case wire::Type::beat:
      return handle(&Server::on_beat);
    case wire::Type::finish:
      return on_finish();
    default:
      return link_.drop(
          fmt::format("its message has the unknown type {}", static_cast<std::uint32_t>(frame.type)));
  }
}

void Server::refuse(const wire::Launch& launch, wire::Fault fault, const std::string& message) {
  say("event=launch_refused {} reason={}", name_of(launch), value(message));
  link_.send(wire::LaunchFailed{launch.job, fault, message});
}

void Server::take_on(wire::Launch launch, std::vector<Fd> fds) {
  const auto refused = [&](const std::string& why) { refuse(launch, wire::Fault::infrastructure, why); };
  if (leaving_) return refused("the container is about to end");
  if (job_) return refused("another job, or what it has left, is in this container");
  if (unclean_) return refused("what an earlier job left in this container cannot be removed");
  job_.emplace();
  job_->launch = std::move(launch);
  job_->account.job = job_->launch.job;
  job_->fds = std::move(fds);
  // A glue that was killed, with its container, has cleaned up after nobody; and the next job of that user,
  // in any container of the pod, may be another owner's. What is in /tmp here is the image's.
  job_->cleaning.emplace(user_of(job_->launch), options_.cleaning, k_folders_of_pod);
  if (!job_->cleaning->done()) say("event=clearing {} uid={}", name_of(job_->launch), job_->launch.uid);
  clean_some();
}

// Nothing of another job is left.
void Server::begin() {
  if (job_->launch.argv.empty()) {  // that was all
    job_->status = ExitStatus::exited(0);
    return finish_job();
  }
  job_->stage = Job::Stage::launching;
  if (const auto forked = fork_main(); !forked) {
    job_->failure = forked.error();
    return finish_job();
  }
  set_timer(options_.launch_limit, &Server::on_launch_overdue);
  for (const int number : std::exchange(job_->early_signals, {})) act_on(number);
}

Result<void> Server::fork_main() {
  const auto fds = std::exchange(job_->fds, {});
  image_.prepare(job_->launch);
  TRY(job_->links.make(job_->launch.links, options_.scratch_directory));
  job_->memory = control_group_->read();
  job_->account.started_ns = now_ns();
  // Watched before there is a child: one that could not be watched would run unseen.
  auto pipe = TRY(report_pipe());
  TRY(loop_.watch(pipe.read.get(), EPOLLIN, [this](std::uint32_t) { on_report(); }));
  job_->report = std::move(pipe.read);
  auto started = start(image_.by_its_scripts(job_->launch), fds, *filter_, pipe.write);
  if (!started) {
    close_report();
    return started.error();
  }
  job_->main = *std::move(started);
  return {};
}

void Server::on_report() {
  ChildReport report;
  const Record told = read_record(job_->report, &report);
  if (told == Record::none) return;
  close_report();
  if (told == Record::whole) {
    job_->failure = explain(report, job_->launch, job_->main.candidates, options_.scratch_directory);
    return begin_end();  // the child is at its _exit
  }
  if (job_->stage == Job::Stage::launching) {
    loop_.cancel(job_->timer);
    job_->stage = Job::Stage::running;
  }
  link_.send(wire::Started{job_->launch.job, job_->main.pid});
  say("event=job_started {} pid={} uid={} program={}", name_of(job_->launch), job_->main.pid,
      job_->launch.uid, value(job_->launch.argv[0]));
}

void Server::on_launch_overdue() {
  job_->failure =
      error("the job's process did not start its program within {} s", options_.launch_limit.count() / 1000);
  begin_end();
}

void Server::close_report() {
  loop_.forget(job_->report.get());
  job_->report.reset();
}

void Server::on_signal(const wire::Signal& signal) {
  // The signal is for a job that has just ended, or is being ended anyway.
  if (!job_ || job_->launch.job != signal.job || job_->stage >= Job::Stage::ending) return;
  if (signal.number <= 0 || signal.number >= NSIG) return;
  say("event=signal {} number={}", name_of(job_->launch), signal.number);
  if (signal.number == SIGKILL) return begin_end();
  if (job_->stage == Job::Stage::clearing) return job_->early_signals.push_back(signal.number);
  act_on(signal.number);
}

void Server::act_on(int number) {
  switch (number) {
    case SIGSTOP:
    case SIGTSTP:
    case SIGCONT:
      job_->suspended = number != SIGCONT;
      return pursue(number);
    default:
      job_->told = true;
      signal_main(number);
  }
}

// Never kill(-1).
void Server::signal_main(int number) {
  if (job_->main.pid != -1) signal_child(job_->main.pid, number);
}

// The first pass at once, for the sake of order; then again until it finds nothing new.
void Server::pursue(int number) {
  job_->pursuit.emplace(number);
  job_->pursuit_until = Loop::now() + k_signal_limit;
  pursue_on();
}

void Server::pursue_on() {
  loop_.cancel(job_->pursuit_timer);
  if (job_->pursuit->pass() || Loop::now() >= job_->pursuit_until) return job_->pursuit.reset();
  job_->pursuit_timer = loop_.after(job_->pursuit->pause(), [this] { pursue_on(); });
}

void Server::on_finish() {
  if (!job_) return leave(0);
  leaving_ = 0;
  begin_end();
}

// The next agent finds glue ready: it is looked for when nothing of the job is left.
bool Server::on_agent_lost() {
  if (!job_) return true;
  say("event=job_without_agent {}", name_of(job_->launch));
  begin_end();
  return !job_;
}

void Server::on_process_signal(const signalfd_siginfo& info) {
  if (info.ssi_signo == SIGCHLD) return reap_some();
  if (is_order_to_end(info)) on_terminate(static_cast<int>(info.ssi_signo));
}

void Server::on_terminate(int number) {
  if (leaving_) return;
  const std::string name = signal_name(number);
  say("event=asked_to_end signal={}", name);
  // Before the job's end: however it ends now, the agent knows that it was made to.
  link_.send(wire::Goodbye{name});
  if (!job_) return leave(k_exit_terminated);
  leaving_ = k_exit_terminated;
  loop_.after(options_.grace, [this] { hurry(); });
  // The goodbye makes the agent have the job vacated: by its own kill_sig, and in its own time. SIGTERM
  // beside that would end one that waits for another signal before it has saved anything.
  loop_.after(k_agent_limit, [this] {
    if (!job_ || job_->told || job_->stage >= Job::Stage::ending) return;
    signal_main(SIGTERM);
    if (job_->suspended) pursue(SIGCONT);
  });
}

void Server::reap_some() {
  loop_.cancel(reap_timer_);
  const bool had_ended = job_ && job_->status;
  children_ = reap(k_reaped_at_once,
                   [this](pid_t pid, int status, const rusage& usage) { account_for(pid, status, usage); });
  // The others after whatever else waits.
  if (children_ == Children::unknown) reap_timer_ = loop_.after(Milliseconds(0), [this] { reap_some(); });
  if (!job_) return;
  if (job_->status && !had_ended)
    main_ended();  // also while it is cleaned after, where the kernel had held it
  else if (job_->stage == Job::Stage::ending && children_ == Children::none)
    end_some();
  if (job_ && std::exchange(job_->cleaning_moved, false)) clean_some();
}

void Server::account_for(pid_t pid, int status, const rusage& usage) {
  if (was_shm_cleaner(pid) || !job_) return;
  if (was_count(pid)) return;
  if (job_->cleaning && job_->cleaning->ended(pid)) {
    job_->cleaning_moved = true;
    return;
  }
  if (job_->ending) job_->ending->reaped(pid, status);
  auto& account = job_->account;
  account.user_microseconds += microseconds(usage.ru_utime);
  account.system_microseconds += microseconds(usage.ru_stime);
  account.max_rss_kib = std::max<std::int64_t>(account.max_rss_kib, usage.ru_maxrss);
  for (auto& [id, session] : job_->sessions)
    if (session.supervisor == pid) session.supervisor = -1;
  if (pid != job_->main.pid || job_->status) return;  // one that was given its pid since
  account.ended_ns = now_ns();
  job_->status = ExitStatus::from_wait(status);
}

void Server::set_timer(Milliseconds delay, void (Server::*handler)()) {
  loop_.cancel(job_->timer);
  job_->timer = loop_.after(delay, [this, handler] { (this->*handler)(); });
}

void Server::leave(int exit_code) {
  leaving_ = exit_code;
  link_.leave();
  say("event=exiting code={}", exit_code);
  loop_.stop();
}

}  // namespace glidepod::glue
