// How a job ends: what is left of it is killed, then what it left in shared places is removed. Neither waits.

#include <malloc.h>
#include <signal.h>

#include "glue/events.hpp"
#include "glue/server.hpp"

namespace glidepod::glue {

namespace {

// Once the time of grace is over, Kubernetes' own soon is too.
constexpr Cleaning::Limits k_hurried = {.as_user = std::chrono::seconds(2),
                                        .as_root = std::chrono::seconds(1),
                                        .to_die = std::chrono::milliseconds(500)};

}  // namespace

// How it ended is told at once: nothing that happens to glue later can lose it. Where nothing is left of the
// job, the look that finds so is all there is, and JobEnded goes with it: an agent woken in between would
// take the processor for a while, on a busy machine for milliseconds.
void Server::main_ended() {
  if (job_->report) on_report();  // it came to its end before that was looked at
  if (!job_) return;
  link_.hold();
  if (!job_->failure) {
    const MemoryUse memory = use_between(job_->memory, control_group_->read());
    link_.send(wire::Exited{.job = job_->launch.job,
                            .status = *job_->status,
                            .ended_ns = job_->account.ended_ns,
                            .oom_kills = memory.oom_kills,
                            .memory_limit_kib = memory.limit_kib,
                            .memory_peak_kib = memory.peak_kib,
                            .max_rss_kib = job_->account.max_rss_kib});
  }
  if (job_->stage < Job::Stage::ending)
    begin_end();
  else if (job_->stage == Job::Stage::ending && children_ == Children::none)
    end_some();
  link_.release();
}

void Server::begin_end() {
  if (job_->stage >= Job::Stage::ending) return;
  loop_.cancel(job_->pursuit_timer);
  if (job_->failure) close_report();
  if (job_->stage == Job::Stage::clearing) {
    job_->failure = error("the job was ended before it was started");
    job_->cleaning.reset();  // its child is ended with the rest
  }
  forget_sessions();
  loop_.cancel(job_->counting_timer);
  job_->stage = Job::Stage::ending;
  job_->ending.emplace(Loop::now(), options_.end_limit, job_->counting ? job_->counting->pid() : -1);
  reap_some();
  if (job_ && job_->stage == Job::Stage::ending) end_some();
}

void Server::end_some() {
  if (children_ != Children::none) {
    link_.release();
    if (const auto pause = job_->ending->step(Loop::now())) return set_timer(*pause, &Server::end_some);
  }
  job_->account.processes_killed = job_->ending->killed();
  job_->account.clean = children_ == Children::none;
  if (job_->report) {  // it hangs in the kernel, before its program
    close_report();
    job_->failure = Error("the job's process hangs in the kernel: it neither starts its program nor ends");
  }
  begin_cleaning();
}

// Also after a launch that failed: one that was given up may have come to its program just then.
void Server::begin_cleaning() {
  job_->stage = Job::Stage::cleaning;
  job_->cleaning.emplace(user_of(job_->launch), hurry_ ? k_hurried : options_.cleaning);
  clean_some();
}

void Server::clean_some() {
  if (!job_->cleaning->done()) return set_timer(job_->cleaning->limit(), &Server::cleaning_overdue);
  loop_.cancel(job_->timer);
  if (job_->stage == Job::Stage::cleaning) return finish_job();
  if (leaving_) return begin_end();
  if (job_->cleaning->result().complete) return begin();
  job_->failure =
      error("what an earlier job of user {} has left in shared folders cannot be removed", job_->launch.uid);
  finish_job();
}

void Server::cleaning_overdue() {
  say("event=cleaning_overdue {}", name_of(job_->launch));
  job_->cleaning->overdue();
  clean_some();
}

// The time of grace after an order to end is over.
void Server::hurry() {
  hurry_ = true;
  if (!job_) return;
  if (job_->stage != Job::Stage::cleaning) return begin_end();
  job_->cleaning->limit_to(k_hurried);
  cleaning_overdue();
}

void Server::finish_job() {
  job_->links.undo();
  auto& account = job_->account;
  account.clean = account.clean && job_->cleaning->result().complete;
  if (job_->failure) {
    const auto fault = fault_of(*job_->failure);
    const auto message = job_->failure->message();
    // A launch that fails before its clearing is over fails for what is left.
    const bool left = job_->stage == Job::Stage::clearing;
    link_.send(wire::LaunchFailed{job_->launch.job, fault, message, left});
    say("event=launch_failed {} fault={} reason={}", name_of(job_->launch),
        fault == wire::Fault::user ? "user" : "infrastructure", value(message));
  } else {
    account.status = job_->status.value_or(ExitStatus::signaled(SIGKILL));
    if (account.ended_ns == 0) account.ended_ns = now_ns();
    account.files_removed = job_->cleaning->result().removed;
    link_.send(account);
    if (job_->launch.argv.empty())
      say("event=cleared {} uid={} removed={}", name_of(job_->launch), job_->launch.uid,
          account.files_removed);
    else
      say("event=job_ended {} status={} killed={} removed={} clean={}", name_of(job_->launch),
          value(account.status.to_string()), account.processes_killed, account.files_removed, account.clean);
  }
  unclean_ |= !account.clean;
  job_.reset();
  ::malloc_trim(0);
  if (leaving_) return leave(*leaving_);
  link_.resume();
}

}  // namespace glidepod::glue
