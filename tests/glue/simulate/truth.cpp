#include "tests/glue/simulate/truth.hpp"

#include <signal.h>

#include <algorithm>

#include "tests/glue/simulate/world.hpp"

namespace glidepod::glue::simulate {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// What all the small delays of a schedule come to.
constexpr auto k_slack = seconds(3);
constexpr auto k_launching = seconds(30);
// From the reason to end to JobEnded: ending, then cleaning as the user, as root, and what was killed to die.
constexpr auto k_end = seconds(10) + seconds(20) + seconds(2) + seconds(5) + seconds(2) + k_slack;
// The same once the time of grace is over: both, or cleaning alone.
constexpr auto k_hurried = seconds(10) + seconds(4) + k_slack;
constexpr auto k_cleaning_hurried = seconds(2) + k_slack;
constexpr auto k_at_once = seconds(1);
// How long the agent is waited for, which has HTCondor send the job's own signal.
constexpr auto k_agent_first = seconds(2);
// Processes come to rest in this time, or never will; who is this young may not have been seen.
constexpr auto k_rest = milliseconds(200);
constexpr auto k_young = milliseconds(60);
constexpr auto k_longest_rest = seconds(1);
// What it may take to see that some never will.
constexpr auto k_impatience = milliseconds(800);
// How long a suspended job's processes are looked for.
constexpr auto k_pursuit = seconds(2) + k_slack;

template <typename Message>
Message decode(wire::Type type, const std::string& body) {
  wire::Frame frame;
  frame.type = type;
  frame.body = body;
  return frame.decode<Message>().value();
}

}  // namespace

void Truth::must_end() {
  if (open_ && !cause_) cause_ = world_.now();
}

bool Truth::idle() const {
  return !open_ && std::ranges::none_of(answers_, [](const auto& answer) { return answer.second == 0; });
}

void Truth::handles(const wire::Frame& frame) {
  const auto heard = [&](const auto& message) {
    malformed_ = !message.ok();
    if (malformed_) must_end();
    return message.ok();
  };
  const bool hears = !world_.agent.closed();
  switch (frame.type) {
    case wire::Type::signal: {
      const auto signal = frame.decode<wire::Signal>();
      return heard(signal) ? handles_signal(signal.value()) : void();
    }
    case wire::Type::beat: {
      if (!heard(frame.decode<wire::Beat>())) return;
      account.beat_asked();
      return workers.asked(started_told_ && runs_freely() && !cause_ && !leaving_at_);
    }
    case wire::Type::finish:
      must_end();
      leaving_at_ = leaving_at_.value_or(world_.now());
      return;
    case wire::Type::launch: {
      const auto launch = frame.decode<wire::Launch>();
      if (!heard(launch)) return;
      if (hears) answers_[launch->job] = 0;
      if (frame.fds.size() != 3) refused_.insert(launch->job);
      return;
    }
    case wire::Type::clear: {
      const auto clear = frame.decode<wire::Clear>();
      if (!heard(clear)) return;
      if (hears) answers_[clear->job] = 0;
      only_clear_.insert(clear->job);
      return;
    }
    case wire::Type::open_session: {
      const auto open = frame.decode<wire::OpenSession>();
      if (!heard(open) || !hears) return;
      // One that is killed before its program has started as well, for glue.
      const bool runs = open_ && open->job == job_ && (runs_ || started_told_) && !leaving_at_;
      return sessions.asked(open.value(), !runs || frame.fds.size() != 3);
    }
    case wire::Type::close_session: {
      const auto close = frame.decode<wire::CloseSession>();
      if (heard(close)) sessions.closing(close->session, open_ && close->job == job_);
      return;
    }
    default:
      malformed_ = true;
      return must_end();
  }
}

void Truth::handled(bool connected) const {
  world_.check(!malformed_ || !connected, "an agent that sends what is no message is dropped");
  world_.check(open_ || idle(), "what is asked for is begun or answered at once");
}

void Truth::handles_signal(const wire::Signal& signal) {
  if (!open_ || signal.job != job_) return;
  if (signal.number == SIGKILL) return must_end();
  if (signal.number == SIGSTOP || signal.number == SIGTSTP || signal.number == SIGCONT) {
    suspended_ = signal.number != SIGCONT;
    last_pursued_ = signal.number;
    pursued_at_ = world_.now();
    return world_.stir();
  }
  if (signal.number <= 0 || signal.number >= NSIG) return;
  told_ = true;
  signals_.push_back(signal.number);
}

void Truth::lost() {
  must_end();
  of_this_agent_ = goodbye_due_ = malformed_ = false;
  sessions.forget();
  if (open_ && said_) close();
  answers_.clear();
  beats_.clear();
}

void Truth::terminated() {
  if (leaving_at_) return;
  leaving_at_ = terminated_at_ = world_.now();
  goodbye_due_ = world_.agent.is_connected() && !world_.agent.closed();
}

void Truth::clears(std::uint64_t job) {
  take_on(job);
  clears_ = true;
}

void Truth::starts(std::uint64_t job) {
  if (open_ && clears_ && job == job_)
    clears_ = false;
  else
    take_on(job);
  world_.check(!only_clear_.contains(job), "what is there to clear starts nothing");
  world_.check(!refused_.contains(job), "what may not be launched is not");
  account.starts();
  launched_at_ = world_.now();
  for (const Process* process : world_.tree.descendants())
    world_.check(process->kind == Process::Kind::stranger, "no launch while an earlier job's process lives");
  world_.check(world_.files + world_.stubborn_files == 0, "no launch while an earlier job's files are there");
}

void Truth::take_on(std::uint64_t job) {
  world_.check(!open_, "one job at a time");
  world_.check(!unclean_, "no launch after something was left here");
  world_.check(!leaving_at_, "no launch in a container that is about to end");
  open_ = no_start_ = true;
  clears_ = false;
  of_this_agent_ = !world_.agent.closed();
  job_ = job;
  reported_failure_ = runs_ = started_told_ = exited_told_ = end_told_ = said_ = excused_ = false;
  launched_at_ = world_.now();
  status_.reset();
  cause_.reset();
  workers.forget();
  last_pursued_ = 0;
  struck_.clear();
  killed_.clear();
  stopping_since_.reset();
  told_ = termed_ = false;
  killed_by_others_ = 0;
  suspended_ = woken_ = without_agent_ = false;
  signals_.clear();
  account.begins();
}

void Truth::forked(pid_t main) {
  main_ = main;
  no_start_ = false;
  account.forked();
  pursued_at_ = world_.now();  // by what came before
}

void Truth::reported_failure() {
  reported_failure_ = true;
}

void Truth::runs() {
  runs_ = true;
}

void Truth::main_ended(int status) {
  status_ = status;
  account.main_ended();
  ended_at_ = world_.now();
  must_end();
}

// The log is heard of also where no agent is.
void Truth::says(std::string_view line) {
  if (line.starts_with("event=launch_refused ")) return;
  if (line.starts_with("event=agent_awaited ")) return contact.awaited();
  if (line.starts_with("event=agent_connected")) return contact.connected();
  if (line.starts_with("event=agent_lost ")) {
    contact.lost();
    without_agent_ = open_;
    if (!open_) contact.free();
    return;
  }
  constexpr std::string_view k_clearing = "event=clearing job=";
  if (line.starts_with(k_clearing)) return clears(std::stoull(std::string(line.substr(k_clearing.size()))));
  if (line.starts_with("event=cleared job=")) {
    world_.check(world_.files + world_.stubborn_files == 0, "no file is left when all is said to be cleared");
    said_ = true;
    if (open_ && (end_told_ || !of_this_agent_)) close();
    return;
  }
  const bool ended = line.starts_with("event=job_ended "), failed = line.starts_with("event=launch_failed ");
  if (!ended && !failed) return;
  if (!open_) {  // no process was asked for
    world_.check(failed, "a job that ends has begun");
    return;
  }
  const bool clean = line.find("clean=false") == std::string_view::npos;
  if (clean && ended) {
    world_.check(world_.tree.descendants().empty(), "nothing lives when the job is said to be clean");
    world_.check(world_.files + world_.stubborn_files == 0,
                 "no file is left when the job is said to be clean");
  }
  if (!clean) {
    const bool hurried = terminated_at_ && world_.now() >= *terminated_at_ + world_.options.grace;
    world_.check(excused_ || hurried, "a job is unclean for a reason only");
    unclean_ = true;
  }
  said_ = true;
  if (end_told_ || !of_this_agent_) close();
}

void Truth::close() {
  if (std::exchange(without_agent_, false)) contact.free();
  sessions.forget();
  open_ = false;
  workers.forget();
  cause_.reset();
}

void Truth::sends(wire::Type type, const std::string& body) {
  switch (type) {
    case wire::Type::started: {
      const auto job = decode<wire::Started>(type, body).job;
      world_.check(open_ && of_this_agent_ && job == job_ && !started_told_, "a job is said to start once");
      started_told_ = true;
      return;
    }
    case wire::Type::exited:
      return sent_exited(decode<wire::Exited>(type, body));
    case wire::Type::job_ended:
      return sent_end(decode<wire::JobEnded>(type, body));
    case wire::Type::launch_failed:
      return sent_failure(decode<wire::LaunchFailed>(type, body));
    case wire::Type::beat: {
      const auto beat = decode<wire::Beat>(type, body);
      world_.check(beats_.erase(beat.number) == 1, "a beat is answered once");
      account.check_beat(beat);
      workers.told(beat.disk_kib, beat.disk_complete);
      return;
    }
    case wire::Type::goodbye:
      world_.check(std::exchange(goodbye_due_, false), "Goodbye is said once, to who asks for an end");
      return world_.check(decode<wire::Goodbye>(type, body).reason == "SIGTERM", "Goodbye says why");
    case wire::Type::session_started:
      return sessions.told(decode<wire::SessionStarted>(type, body));
    case wire::Type::session_ended:
      world_.check(open_ && !end_told_, "a session ends before its job");
      return sessions.told(decode<wire::SessionEnded>(type, body));
    case wire::Type::session_failed:
      return sessions.told(decode<wire::SessionFailed>(type, body));
    default:
      return;
  }
}

void Truth::sent_exited(const wire::Exited& exited) {
  world_.check(open_ && of_this_agent_ && exited.job == job_, "Exited is of the job that runs");
  world_.check(!exited_told_, "Exited is sent once");
  world_.check(status_.has_value(), "Exited is sent when the main process has ended");
  world_.check(exited.status == ExitStatus::from_wait(*status_), "Exited has the true status");
  world_.check(!reported_failure_, "a launch that failed has no exit status");
  world_.check(!goodbye_due_, "who asks for an end is named before the end");
  account.check_exited(exited);
  exited_told_ = true;
}

void Truth::sent_end(const wire::JobEnded& ended) {
  if (only_clear_.contains(ended.job)) {
    world_.check(++answers_[ended.job] == 1, "what is cleared is told once");
    world_.check(ended.status == ExitStatus::exited(0), "what is cleared ends well");
    if (open_ && ended.job == job_) end_told_ = true;
    return;
  }
  world_.check(open_ && of_this_agent_ && ended.job == job_, "JobEnded is of the job that runs");
  world_.check(!end_told_, "JobEnded is sent once");
  world_.check(started_told_, "what ends was said to start");
  if (exited_told_)
    world_.check(ended.status == ExitStatus::from_wait(*status_), "JobEnded has the true status");
  else
    world_.check(!ended.clean, "Exited is sent before JobEnded, unless the main process cannot be ended");
  world_.check(ended.processes_killed <= struck_.size() + killed_by_others_,
               "no more are said to be killed than were");
  world_.check(!ended.clean || ended.processes_killed >= killed_.size(), "all that were killed are counted");
  account.check_ended(ended, exited_told_);
  ++answers_[ended.job];
  end_told_ = true;
  if (said_) close();
}

void Truth::sent_failure(const wire::LaunchFailed& failed) {
  const auto answer = answers_.find(failed.job);
  world_.check(answer != answers_.end() && answer->second == 0, "a launch is answered once");
  ++answer->second;
  const bool user = refused_.contains(failed.job) || (open_ && failed.job == job_ && reported_failure_);
  const bool late = open_ && failed.job == job_ && world_.now() - launched_at_ >= k_launching;
  world_.check(late || failed.fault == (user ? wire::Fault::user : wire::Fault::infrastructure),
               "it is told whose fault it is that a launch fails");
  if (!open_ || failed.job != job_) return;  // refused
  world_.check(failed.left == (clears_ && !cause_ && !leaving_at_), "what an earlier job has left is named");
  const bool overdue = world_.now() - launched_at_ >= k_launching;
  world_.check(no_start_ || reported_failure_ || overdue || (!runs_ && excused_),
               "a launch fails for a reason only");
  world_.check(!started_told_ && !exited_told_, "a launch fails before it is said to start");
  end_told_ = true;
  if (said_) close();
}

void Truth::beat_sent(std::uint64_t number) {
  beats_[number] = world_.now();
}

// Who is killed while others still run makes room for their children.
void Truth::kills_all() {
  if (!ending()) return;
  const auto now = world_.now();
  const auto stopping = stopping_since_ ? now - *stopping_since_ : SteadyTime::duration(0);
  const bool patient = stopping >= k_rest;
  const auto all = world_.tree.descendants();
  const bool some_cannot = std::ranges::any_of(all, [](const Process* process) {
    return process->dumps && process->state == Process::State::runs && !process->stuck && !process->killed;
  });
  for (const Process* process : all) {
    const auto age = now - process->born;
    world_.check(!some_cannot || stopping >= k_longest_rest || age < k_young || age > k_rest - k_young,
                 "while others come they are waited for");
  }
  for (const Process* process : all) {
    const bool runs =
        process->state == Process::State::runs && !process->stuck && !process->dumps && !process->killed;
    world_.check(patient || !runs || now - process->runs_since < k_young,
                 "all stand still before they are killed");
  }
}

bool Truth::may_end() const {
  return !open_ || cause_ || leaving_at_ || reported_failure_ || world_.now() - launched_at_ >= k_launching;
}

bool Truth::runs_calmly() const {
  return started_told_ && !may_end() && world_.now() - pursued_at_ > k_pursuit;
}

void Truth::looks_for_all() {
  account.looks_on();
  world_.check(may_end() || world_.now() - pursued_at_ <= k_pursuit,
               "who is suspended is not looked for for ever");
}

void Truth::strikes(const Process& process, int number) {
  using Kind = Process::Kind;
  const bool works = process.kind == Kind::cleaner || process.kind == Kind::counter;
  if (number == SIGKILL) world_.check(works || may_end(), "nobody is killed before it is time");
  const bool pursued = number == SIGKILL || number == SIGSTOP || number == SIGTSTP || number == SIGCONT;
  if (process.kind == Kind::supervisor && !pursued) {
    world_.check(number == SIGTERM, "a session is ended by SIGTERM");
    sessions.struck(process);
  } else if (!pursued) {
    world_.check(process.pid == main_ && open_, "a signal is for the main process");
    const bool late = terminated_at_ && world_.now() - *terminated_at_ >= k_agent_first;
    if (!signals_.empty()) {
      world_.check(signals_.front() == number, "signals come as they were sent");
      signals_.pop_front();
    } else {
      world_.check(number == SIGTERM && late && !told_,
                   "a job hears of its container's end from HTCondor first");
      if (suspended_) last_pursued_ = SIGCONT;
      if (suspended_) pursued_at_ = world_.now();
      woken_ = suspended_;
    }
    termed_ = termed_ || number == SIGTERM;
  }
  if (ending() && number == SIGSTOP && (!stopping_since_ || killing_)) stopping_since_ = world_.now();
  killing_ = number == SIGKILL;
  if (number == SIGKILL && !works) struck_.insert({process.pid, process.start});
}

void Truth::died(const Process& process) {
  if (process.status != SIGKILL || !open_) return;
  if (!struck_.contains({process.pid, process.start}))
    ++killed_by_others_;
  else if (process.kind == Process::Kind::job)
    killed_.insert(process.pid);
}

// Where nothing new comes, those that cannot be stopped are killed soon.
void Truth::check_rest(SteadyTime now) {
  if (!ending() || !stopping_since_ || killing_ || now - *stopping_since_ < k_impatience) return;
  bool waits = false;
  for (const Process* process : world_.tree.descendants()) {
    if (process->kind == Process::Kind::cleaner || now - process->runs_since < k_impatience) return;
    waits |= process->kind == Process::Kind::job && process->state != Process::State::zombie;
  }
  world_.check(!waits, "who cannot be stopped is killed soon");
}

// Only where all can be stopped: a process that cannot, that comes with a session, or that wakes others, and
// the late end of a parent, have some go on for longer than glue pursues them.
void Truth::check_pursuit(SteadyTime now) {
  if (!open_ || !started_told_ || cause_ || (leaving_at_ && !woken_) || now - pursued_at_ < k_pursuit) return;
  if (terminated_at_ && now >= *terminated_at_ + world_.options.grace) return;
  const Weather& weather = world_.weather;
  const bool stopped = last_pursued_ == SIGSTOP;
  if ((!stopped && last_pursued_ != SIGCONT) || !sessions.empty()) return;
  if (weather.dumper + weather.stuck + weather.phoenix + weather.wakers > 0) return;
  for (const Process* process : world_.tree.descendants()) {
    if (process->kind != Process::Kind::job || process->state == Process::State::zombie) continue;
    world_.check((process->state == Process::State::stopped) == stopped,
                 stopped ? "a suspended job stands still" : "a job that is continued goes on");
  }
}

void Truth::check() {
  workers.check();
  contact.check(open_ || leaving_at_ || world_.shm_files > 0);
  sessions.check(!may_end());
  world_.check(!goodbye_due_, "who is asked to end says Goodbye");
  world_.check(signals_.empty() || may_end() || no_start_, "a signal for the job comes at once");
  world_.check(!open_ || !said_, "the agent is told of the end");
  world_.check(!open_ || no_start_ || world_.weather.slow_reaping || !world_.tree.descendants().empty(),
               "where nothing of a job lives its end goes on");
  const auto now = world_.now();
  const auto overdue = [&](SteadyTime since, auto limit) { return now - since > limit; };
  if (open_ && cause_) {
    world_.check(!overdue(*cause_, k_end), "a job ends in its time");
    const bool known = status_ && !reported_failure_ && !no_start_ && runs_;
    if (known && of_this_agent_ && overdue(ended_at_, k_at_once))
      world_.check(exited_told_ || overdue(launched_at_, k_launching), "how it ended is told at once");
  }
  if (open_ && !runs_ && !cause_)
    world_.check(!overdue(launched_at_, k_launching + k_end), "a launch does not hang for ever");
  for (const auto& [number, since] : beats_)
    world_.check(!overdue(since, k_at_once), "a beat is answered at once");
  check_pursuit(now);
  check_rest(now);
  if (terminated_at_ && now < *terminated_at_ + world_.options.grace && started_told_ && runs_now() &&
      !cause_ && !told_)
    world_.check(termed_ || !overdue(std::max(*terminated_at_, launched_at_), k_agent_first + k_slack),
                 "a job that nobody tells is told by SIGTERM");
  if (terminated_at_) {
    const auto over = *terminated_at_ + world_.options.grace;
    if (now <= over || !hurried_) {
      hurried_ = clears_ ? k_hurried : k_cleaning_hurried;
      for (const Process* process : world_.tree.descendants())
        if (process->kind != Process::Kind::cleaner) hurried_ = k_hurried;
    }
    world_.check(!overdue(over, *hurried_), "after SIGTERM glue ends in its time");
  }
  if (leaving_at_ && !open_)
    world_.check(!overdue(*leaving_at_, k_end + seconds(60)), "glue leaves when it is done");
}

void Truth::left(int code) {
  world_.check(!open_, "glue does not leave while there is a job");
  world_.check(leaving_at_.has_value(), "glue leaves on request only");
  world_.check(code == 0 || (code == 143 && terminated_at_), "glue says why it leaves");
  world_.check(world_.agent.has_read(), "what was said last is read, or waited for");
  for (const auto& [job, answers] : answers_) world_.check(answers == 1, "every launch is answered");
}

}  // namespace glidepod::glue::simulate
