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
constexpr auto k_cleaning_hurried = seconds(4) + k_slack;
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
  switch (frame.type) {
    case wire::Type::signal: {
      const auto signal = frame.decode<wire::Signal>().value();
      if (!open_ || signal.job != job_) return;
      if (signal.number == SIGKILL) must_end();
      if (signal.number == SIGSTOP || signal.number == SIGTSTP || signal.number == SIGCONT) {
        suspended_ = signal.number != SIGCONT;
        last_pursued_ = signal.number;
        pursued_at_ = world_.now();
        world_.stir();
      } else if (signal.number > 0 && signal.number < NSIG) {
        told_ = true;
      }
      return;
    }
    case wire::Type::beat:
      workers.asked(started_told_ && runs_now() && !cause_ && !suspended_ && !leaving_at_);
      return;
    case wire::Type::finish:
      must_end();
      leaving_at_ = leaving_at_.value_or(world_.now());
      return;
    case wire::Type::launch:
      if (!world_.agent.closed()) answers_[frame.decode<wire::Launch>().value().job] = 0;
      return;
    case wire::Type::clear: {
      const auto job = frame.decode<wire::Clear>().value().job;
      if (!world_.agent.closed()) answers_[job] = 0;
      only_clear_.insert(job);
      return;
    }
    case wire::Type::hello:  // nonsense from an agent
      return must_end();
    default:
      return;
  }
}

void Truth::lost() {
  must_end();
  of_this_agent_ = false;
  if (open_ && said_) close();
  answers_.clear();
  beats_.clear();
}

void Truth::terminated() {
  if (leaving_at_) return;
  leaving_at_ = terminated_at_ = world_.now();
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
  suspended_ = without_agent_ = false;
}

void Truth::forked(pid_t main) {
  main_ = main;
  no_start_ = false;
}

void Truth::reported_failure() {
  reported_failure_ = true;
}

void Truth::runs() {
  runs_ = true;
}

void Truth::main_ended(int status) {
  status_ = status;
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
  if (line.starts_with("event=cleared ")) {
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
  sessions_.clear();
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
      workers.told(beat.disk_kib);
      return;
    }
    case wire::Type::session_started: {
      const auto started = decode<wire::SessionStarted>(type, body);
      world_.check(open_ && started.job == job_ && sessions_[started.session]++ == 0,
                   "a session starts once");
      return;
    }
    case wire::Type::session_ended: {
      const auto ended = decode<wire::SessionEnded>(type, body);
      world_.check(open_ && !end_told_ && ended.job == job_, "a session ends before its job");
      world_.check((sessions_[ended.session] += 2) <= 3, "a session ends once");
      return;
    }
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
  exited_told_ = true;
}

void Truth::sent_end(const wire::JobEnded& ended) {
  if (only_clear_.contains(ended.job)) {
    world_.check(++answers_[ended.job] == 1, "what is cleared is told once");
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
  ++answers_[ended.job];
  end_told_ = true;
  if (said_) close();
}

void Truth::sent_failure(const wire::LaunchFailed& failed) {
  const auto answer = answers_.find(failed.job);
  world_.check(answer != answers_.end() && answer->second == 0, "a launch is answered once");
  ++answer->second;
  if (!open_ || failed.job != job_) return;  // refused
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

void Truth::strikes(const Process& process, int number) {
  if (process.pid == main_ && number == SIGTERM && open_) {
    const bool late = terminated_at_ && world_.now() - *terminated_at_ >= k_agent_first;
    world_.check(told_ || late, "a job hears of its container's end from HTCondor first");
    termed_ = true;
  }
  if (ending() && number == SIGSTOP && (!stopping_since_ || killing_)) stopping_since_ = world_.now();
  killing_ = number == SIGKILL;
  if (number == SIGKILL) struck_.insert({process.pid, process.start});
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
  if (!open_ || !started_told_ || cause_ || leaving_at_ || now - pursued_at_ < k_pursuit) return;
  const Weather& weather = world_.weather;
  const bool stopped = last_pursued_ == SIGSTOP;
  if ((!stopped && last_pursued_ != SIGCONT) || !sessions_.empty()) return;
  if (weather.dumper + weather.stuck + weather.phoenix + weather.wakers > 0) return;
  for (const Process* process : world_.tree.descendants()) {
    if (process->kind != Process::Kind::job || process->state == Process::State::zombie) continue;
    if (process->born > pursued_at_) continue;
    world_.check((process->state == Process::State::stopped) == stopped,
                 stopped ? "a suspended job stands still" : "a job that is continued goes on");
  }
}

void Truth::check() {
  workers.check();
  contact.check(open_ || leaving_at_);
  world_.check(!open_ || !said_, "the agent is told of the end");
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
