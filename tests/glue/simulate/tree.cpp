#include "tests/glue/simulate/tree.hpp"

#include <signal.h>

#include <utility>

#include "tests/glue/simulate/world.hpp"

namespace glidepod::glue::simulate {

namespace {
constexpr pid_t k_last_pid = 30;
}  // namespace

Process& Tree::fork(pid_t parent, Process::Kind kind) {
  do last_pid_ = last_pid_ >= k_last_pid ? 3 : last_pid_ + 1;
  while (all_.contains(last_pid_));
  Process& process = all_[last_pid_];
  process.pid = last_pid_;
  process.parent = parent;
  process.start = ++last_start_;
  process.kind = kind;
  process.born = process.runs_since = world_.now();
  return process;
}

Process* Tree::find(pid_t pid) {
  const auto found = all_.find(pid);
  return found == all_.end() ? nullptr : &found->second;
}

Process* Tree::find(pid_t pid, std::uint64_t start) {
  Process* process = find(pid);
  return process != nullptr && process->start == start ? process : nullptr;
}

std::vector<Process*> Tree::children(pid_t parent) {
  std::vector<Process*> result;
  for (auto& [pid, process] : all_)
    if (process.parent == parent) result.push_back(&process);
  return result;
}

std::vector<Process*> Tree::descendants(pid_t root) {
  auto result = children(root);
  for (std::size_t i = 0; i < result.size(); ++i)
    for (Process* child : children(result[i]->pid)) result.push_back(child);
  return result;
}

bool Tree::descends(const Process& process) {
  const Process* at = &process;
  while (at != nullptr && at->parent != k_glue) at = find(at->parent);
  return at != nullptr;
}

// A session's supervisor takes orphans, as glue does.
pid_t Tree::heir_of(const Process& process) {
  for (const Process* at = find(process.parent); at != nullptr; at = find(at->parent))
    if (at->kind == Process::Kind::supervisor && at->state != Process::State::zombie) return at->pid;
  return process.kind == Process::Kind::stranger ? 0 : k_glue;
}

void Tree::end(Process& process, int status) {
  if (process.state == Process::State::zombie) return;
  process.state = Process::State::zombie;
  process.status = status;
  world_.truth.died(process);
  const pid_t heir = heir_of(process);
  for (Process* child : children(process.pid)) {
    child->parent = heir;
    if (child->state == Process::State::zombie) bury(*child);
    // Of a process group that is orphaned the kernel has the stopped ones go on, and sends SIGHUP.
    if (child->state == Process::State::stopped) {
      wake(*child);
      signal(*child, SIGHUP);
    }
  }
  if (process.reports_to >= 0) world_.close_pipe(process.reports_to);
  const auto at_end = std::exchange(process.at_end, nullptr);
  if (at_end) at_end();
  bury(process);
}

// The parent hears of it, reaps it soon, or never does.
void Tree::bury(Process& process) {
  if (process.parent == k_glue) return world_.raise(SIGCHLD);
  const Process* parent = find(process.parent);
  if (parent != nullptr && parent->careless) return;
  world_.later(world_.micro(0, 3000), [this, pid = process.pid, start = process.start] {
    const Process* zombie = find(pid, start);
    if (zombie != nullptr && zombie->parent != k_glue) erase(pid);
  });
}

void Tree::signal(Process& process, int number) {
  if (process.state == Process::State::zombie) return;
  if (number == SIGKILL) process.killed = true;
  if (number == SIGSTOP || number == SIGCONT) process.to_stop = number == SIGSTOP;
  if (process.stuck) return;
  // Of SIGSTOP and SIGCONT the later one counts. A signal acts when its process comes to the processor: soon,
  // or, if it is busy, later.
  later(process, world_.micro(0, number == SIGKILL ? 4000 : 1000), [this, number](Process& at) {
    if (at.stuck) return;
    switch (number) {
      case SIGKILL:
        return end(at, SIGKILL);
      case SIGSTOP:
        if (at.to_stop && !at.dumps && !at.killed) at.state = Process::State::stopped;
        return;
      case SIGCONT:
        if (!at.to_stop) wake(at);
        return;
      case SIGTERM:
        if (at.at_term) return at.at_term();
        [[fallthrough]];
      default:
        if (at.rude || number == SIGTSTP) return;
        if (at.state != Process::State::stopped) return end(at, number);
        at.pending = number;
    }
  });
}

void Tree::wake(Process& process) {
  process.to_stop = false;
  if (process.state != Process::State::stopped) return;
  process.state = Process::State::runs;
  process.runs_since = world_.now();
  if (process.pending != 0) signal(process, std::exchange(process.pending, 0));
}

void Tree::release(Process& process) {
  process.stuck = false;
  if (process.exit_status >= 0)
    end(process, process.exit_status);
  else if (process.killed)
    end(process, SIGKILL);
  else if (process.to_stop)
    process.state = Process::State::stopped;
}

void Tree::later(const Process& process, std::chrono::microseconds wait, std::function<void(Process&)> what) {
  world_.later(wait, [this, pid = process.pid, start = process.start, what = std::move(what)] {
    Process* at = find(pid, start);
    if (at != nullptr && at->state != Process::State::zombie) what(*at);
  });
}

}  // namespace glidepod::glue::simulate
