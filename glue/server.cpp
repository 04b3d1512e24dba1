#include "glue/server.hpp"

#include <malloc.h>
#include <signal.h>

#include <utility>

#include "glue/events.hpp"
#include "glue/launch.hpp"
#include "glue/session.hpp"
#include "glue/stop_signal.hpp"
#include "lib/base/text.hpp"

namespace glidepod::glue {

namespace {

// How long the agent is waited for, which has HTCondor send the job's own signal when its container is
// stopped.
constexpr Milliseconds k_agent_limit = std::chrono::seconds(2);
constexpr int k_exit_terminated = 143;

std::string name_of(std::uint64_t job) {
  return fmt::format("job={}", job);
}

// A job as the log names it, in HTCondor's words, which come from the agent.
std::string name_of(const wire::Launch& launch) {
  return launch.about.empty() ? name_of(launch.job) : one_line(launch.about, 1000);
}

}  // namespace

Server::Server(Loop& loop, ServerOptions options)
    : loop_(loop),
      options_(std::move(options)),
      link_(loop, options_.run_directory, {.container = options_.container, .empty = options_.empty},
            {[this](wire::Frame frame) { on_frame(std::move(frame)); }, [this] { return on_agent_lost(); },
             [this](const Error& error) {
               failure_ = error;
               loop_.stop();
             }}),
      shm_clearing_(loop, [this] { link_.start(); }),
      reap_timer_(loop) {}

Result<int> Server::run() {
  auto signals = stop_signals();
  signals.push_back(SIGCHLD);
  TRY(loop_.on_signals(signals, [this](const signalfd_siginfo& info) { on_process_signal(info); }));
  // Before the agent hears of this container.
  options_.own_shm ? shm_clearing_.begin() : link_.start();
  if (failure_) return *failure_;
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
      return on_launch(std::move(launch).value(), std::move(frame.fds));
    }
    case wire::Type::clear:
      return handle(&Server::on_clear);
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

void Server::on_launch(wire::Launch launch, std::vector<Fd> fds) {
  auto fit = check_launch(launch, fds.size());
  if (fit) fit = check_streams(fds, options_.scratch_directory);
  if (fit) fit = check_free();
  if (!fit) return refuse(launch.job, name_of(launch), fit.error());
  const std::uint64_t number = launch.job;
  const User user = user_of(launch);
  std::string name = name_of(launch);
  take_on(number, std::move(name), user, Start{std::move(launch), std::move(fds), {}});
}

void Server::on_clear(const wire::Clear& clear) {
  if (const auto free = check_free(); !free) return refuse(clear.job, name_of(clear.job), free.error());
  take_on(clear.job, name_of(clear.job), {.uid = clear.uid, .gid = clear.gid, .groups = {}}, std::nullopt);
}

Result<void> Server::check_free() const {
  if (leaving_) return error("the container is about to end");
  if (job_) return error("another job, or what it has left, is in this container");
  if (unclean_) return error("what an earlier job left in this container cannot be removed");
  return {};
}

void Server::refuse(std::uint64_t job, const std::string& name, const Error& why) {
  say("event=launch_refused {} reason={}", name, value(why.message()));
  link_.send(wire::LaunchFailed{job, fault_of(why), why.message()});
}

void Server::take_on(std::uint64_t number, std::string name, const User& user, std::optional<Start> start) {
  // A glue that was killed, with its container, has cleaned up after nobody; and the next job of that user,
  // in any container of the pod, may be another owner's. What is in /tmp here is the image's.
  job_.emplace(loop_, Clearing{Cleaning(user, options_.cleaning, k_folders_of_pod), std::move(start)});
  job_->number = number;
  job_->name = std::move(name);
  job_->user = user;
  if (!job_->cleaning()->done()) say("event=clearing {} uid={}", job_->name, job_->user.uid);
  clean_some();
}

// Nothing of another job is left.
void Server::begin(Start start) {
  job_->stage.emplace<Launching>();
  auto& main =
      job_->main.emplace(loop_, std::move(start.launch), options_.counting, options_.scratch_directory,
                         [this](const JobSessions::Message& message, const std::vector<int>& fds) {
                           std::visit([&](const auto& told) { link_.send(told, fds); }, message);
                         });
  const auto started =
      main.start(image_, std::exchange(start.fds, {}), *filter_, *control_group_, [this] { on_report(); });
  if (!started) return launch_failed(started.error());
  job_->timer.set(options_.launch_limit, [this] {
    job_->failure = error("the job's process did not start its program within {} s",
                          options_.launch_limit.count() / 1000);
    begin_end();
  });
  for (const int number : start.signals) main.signal(number);
}

void Server::on_report() {
  const auto report = job_->main->read_report();
  if (!report) return;
  if (!*report) {
    job_->failure = report->error();
    return begin_end();  // the child is at its _exit
  }
  if (job_->is<Launching>()) {
    job_->timer.stop();
    job_->stage.emplace<Running>();
  }
  const pid_t pid = job_->main->pid();
  link_.send(wire::Started{job_->number, pid});
  say("event=job_started {} pid={} uid={} program={}", job_->name, pid, job_->user.uid,
      value(job_->main->launch().argv[0]));
}

void Server::on_signal(const wire::Signal& signal) {
  // The signal is for a job that has just ended, or is being ended anyway.
  if (!job_ || job_->number != signal.job || job_->ends()) return;
  if (signal.number <= 0 || signal.number >= NSIG) return;
  say("event=signal {} number={}", job_->name, signal.number);
  if (signal.number == SIGKILL) return begin_end();
  if (job_->main) return job_->main->signal(signal.number);
  if (auto& start = std::get<Clearing>(job_->stage).start) start->signals.push_back(signal.number);
}

// The answer does not wait for a count, but has what the last one found.
void Server::on_beat(const wire::Beat& beat) {
  wire::Beat answer{.number = beat.number, .memory_kib = control_group_->used_kib()};
  if (job_ && job_->main) {
    const Counted& counted = job_->main->counting().result();
    answer.disk_kib = counted.kib;
    answer.disk_complete = counted.complete;
  }
  link_.send(answer);
  if (job_ && job_->is<Running>() && !job_->main->suspended()) job_->main->counting().begin();
}

void Server::on_open_session(const wire::OpenSession& message, const std::vector<Fd>& fds) {
  const auto opened = open_session(message, fds);
  if (opened) return;
  const std::string why = opened.error().message();
  say("event=session_refused session={} reason={}", message.session, value(why));
  link_.send(wire::SessionFailed{message.job, message.session, wire::Fault::infrastructure, why});
}

Result<void> Server::open_session(const wire::OpenSession& message, const std::vector<Fd>& fds) {
  TRY(check_session(message, fds.size()));
  TRY(check_streams(fds, options_.scratch_directory));
  if (!job_ || job_->number != message.job || job_->ends()) return error("the job has ended");
  if (job_->is<Clearing>() || job_->is<Launching>()) return error("the job has not started yet");
  if (leaving_) return error("the container is about to end");
  const auto launch = launch_of_session(job_->main->launch(), message.request);
  return job_->main->sessions().open(image_.by_its_scripts(launch), message, fds, *filter_);
}

void Server::on_close_session(const wire::CloseSession& message) {
  if (job_ && job_->main && job_->number == message.job) job_->main->sessions().close(message.session);
}

void Server::on_finish() {
  if (!job_) return leave(0);
  leaving_ = 0;
  begin_end();
}

// The next agent finds glue ready: it is looked for when nothing of the job is left.
bool Server::on_agent_lost() {
  if (!job_) return true;
  say("event=job_without_agent {}", job_->name);
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
    if (job_ && job_->main && !job_->ends()) job_->main->terminate();
  });
}

void Server::reap_some() {
  reap_timer_.stop();
  const bool had_exited = job_ && job_->has_exited();
  bool cleaning_moved = false;
  children_ = reap(k_reaped_at_once, [&](pid_t pid, int status, const rusage& usage) {
    if (shm_clearing_.ended(pid) || !job_) return;
    if (Cleaning* cleaning = job_->cleaning(); cleaning && cleaning->ended(pid))
      cleaning_moved = true;
    else if (job_->main && job_->main->reaped(pid, status, usage) && job_->is<Ending>())
      std::get<Ending>(job_->stage).reaped(pid, status);
  });
  // The others after whatever else waits.
  if (children_ == Children::unknown) reap_timer_.set(Milliseconds(0), [this] { reap_some(); });
  if (!job_) return;
  if (job_->has_exited() && !had_exited)
    main_ended();  // also while it is cleaned after, where the kernel had held it
  else if (job_->is<Ending>() && children_ == Children::none)
    end_some();
  if (cleaning_moved) clean_some();
}

void Server::leave(int exit_code) {
  leaving_ = exit_code;
  link_.leave();
  say("event=exiting code={}", exit_code);
  loop_.stop();
}

}  // namespace glidepod::glue
