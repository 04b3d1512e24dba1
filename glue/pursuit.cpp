#include "glue/pursuit.hpp"

#include <signal.h>
#include <sys/wait.h>

namespace glidepod::glue {

namespace {

using std::chrono::steady_clock;

// How long all is expected to come to rest: since the last new process, and at most.
constexpr Milliseconds k_quiet = Milliseconds(200);
constexpr Milliseconds k_longest_stop = std::chrono::seconds(1);
// Nor before so many looks: among a thousand processes that want the processor, one can take seconds.
constexpr int k_fewest_passes = 10;
// How long the killed may take before it is looked whether all were.
constexpr Milliseconds k_kill_round = Milliseconds(200);
constexpr Milliseconds k_dying = Milliseconds(20);

bool runs(const ProcessStat& process) {
  return process.state == 'R' || process.state == 'S';
}

// A child that ended meanwhile has made its SIGCHLD pending.
void wait_for_child(Milliseconds limit) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  const timespec time{.tv_sec = limit.count() / 1000, .tv_nsec = (limit.count() % 1000) * 1000000L};
  ::sigtimedwait(&set, nullptr, &time);
}

}  // namespace

bool Pursuit::pass() {
  ++passes_;
  found_ = own_descendants();
  found_new_ = false;
  bool at_rest = true;
  for (const auto& process : found_) {
    if (process.ended()) continue;
    const bool is_new = known_.insert({process.pid, process.start_time}).second;
    const bool must_stop = number_ == SIGSTOP && runs(process);
    found_new_ |= is_new;
    at_rest = at_rest && !is_new && !must_stop;
    if (!is_new && !must_stop) continue;
    send_signal(open_process(process), number_);
  }
  return at_rest;
}

std::optional<Milliseconds> Ending::step(SteadyTime now) {
  if (now >= deadline_) return std::nullopt;
  return now < killing_until_ ? hunt() : stop(now);
}

Milliseconds Ending::stop(SteadyTime now) {
  if (!stopping_) {
    stopping_.emplace(SIGSTOP);
    stopping_since_ = now;
  }
  const bool at_rest = stopping_->pass();
  if (stopping_->found_new()) found_new_at_ = now;
  const bool overdue = stopping_->passes() >= k_fewest_passes &&
                       (now - found_new_at_ >= k_quiet || now - stopping_since_ >= k_longest_stop);
  if (!at_rest && !overdue) return stopping_->pause();
  kill_found();
  stopping_.reset();
  hunted_.clear();
  killing_until_ = now + k_kill_round;
  return hunt();
}

void Ending::kill_found() {
  for (const auto& process : stopping_->found()) {
    if (!send_signal(open_process(process), SIGKILL)) continue;
    if (process.ended() || process.pid == uncounted_) continue;
    if (counted_.insert(process.pid).second) ++killed_;
  }
}

Milliseconds Ending::hunt() {
  bool found_new = false;
  for (const pid_t child : own_children()) {
    signal_child(child, SIGKILL);
    found_new |= hunted_.insert(child).second;
  }
  return found_new ? Milliseconds(0) : k_dying;
}

// Those of a list are not all reaped here: some parents ignore SIGCHLD.
void Ending::reaped(pid_t pid, int status) {
  if (counted_.erase(pid) == 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ++killed_;
}

void end_descendants(Milliseconds limit, const Reaped& reaped) {
  Ending ending(steady_clock::now(), limit);
  while (true) {
    if (reap(k_reaped_at_once, reaped) == Children::none) return;
    const auto pause = ending.step(steady_clock::now());
    if (!pause) return;
    wait_for_child(*pause);
  }
}

}  // namespace glidepod::glue
