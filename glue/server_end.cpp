// How a job ends: what is left of it is killed, then what it left in shared places is removed. Neither waits.

#include <malloc.h>
#include <signal.h>

#include "glue/events.hpp"
#include "glue/links.hpp"
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
  if (job_->main->is_starting()) on_report();  // it came to its end before that was looked at
  if (!job_) return;
  link_.hold();
  if (!job_->failure) link_.send(job_->main->exited(control_group_->read()));
  if (!job_->ends())
    begin_end();
  else if (job_->is<Ending>() && children_ == Children::none)
    end_some();
  link_.release();
}

void Server::begin_end() {
  if (job_->ends()) return;
  if (job_->is<Clearing>())  // its child is ended with the rest
    job_->failure = error("the job was ended before it was started");
  if (job_->main && job_->failure) job_->main->close_report();
  const pid_t counter = job_->main ? job_->main->hand_over() : -1;
  job_->stage.emplace<Ending>(Loop::now(), options_.end_limit, counter);
  reap_some();
  if (job_ && job_->is<Ending>()) end_some();
}

// Cleans also after a launch that failed: one that was given up may have come to its program just then.
void Server::end_some() {
  Ending& ending = std::get<Ending>(job_->stage);
  if (children_ != Children::none) {
    link_.release();
    if (const auto pause = ending.step(Loop::now())) return job_->timer.set(*pause, [this] { end_some(); });
  }
  unclean_ = children_ != Children::none;
  if (job_->main) {
    job_->main->account().processes_killed = ending.killed();
    if (job_->main->is_starting()) job_->failure = job_->main->give_up();
  }
  job_->stage.emplace<Cleaning>(job_->user, hurry_ ? k_hurried : options_.cleaning);
  clean_some();
}

void Server::clean_some() {
  const Cleaning& cleaning = *job_->cleaning();
  if (!cleaning.done()) return job_->timer.set(cleaning.limit(), [this] { cleaning_overdue(); });
  job_->is<Clearing>() ? cleared() : finish_job();
}

void Server::cleaning_overdue() {
  say("event=cleaning_overdue {}", job_->name);
  job_->cleaning()->overdue();
  clean_some();
}

void Server::cleared() {
  if (leaving_) return begin_end();
  auto& [cleaning, start] = std::get<Clearing>(job_->stage);
  if (!cleaning.result().complete) {
    unclean_ = true;
    return launch_failed(
        error("what an earlier job of user {} has left in shared folders cannot be removed", job_->user.uid));
  }
  if (start) return begin(std::move(*start));
  const auto removed = cleaning.result().removed;
  link_.send(wire::JobEnded{.job = job_->number, .ended_ns = now_ns(), .files_removed = removed});
  say("event=cleared {} uid={} removed={}", job_->name, job_->user.uid, removed);
  forget_job();
}

// The time of grace after an order to end is over.
void Server::hurry() {
  hurry_ = true;
  if (!job_) return;
  auto* cleaning = std::get_if<Cleaning>(&job_->stage);
  if (!cleaning) return begin_end();
  cleaning->limit_to(k_hurried);
  cleaning_overdue();
}

void Server::finish_job() {
  const Cleaned cleaned = job_->cleaning()->result();
  unclean_ |= !cleaned.complete;
  if (job_->failure) return launch_failed(*job_->failure);
  wire::JobEnded ended = job_->main->account();
  ended.status = job_->main->status().value_or(ExitStatus::signaled(SIGKILL));
  if (ended.ended_ns == 0) ended.ended_ns = now_ns();
  ended.files_removed = cleaned.removed;
  ended.clean = !unclean_;
  job_->main.reset();  // undoes its links before its end is told
  link_.send(ended);
  say("event=job_ended {} status={} killed={} removed={} clean={}", job_->name,
      value(ended.status.to_string()), ended.processes_killed, ended.files_removed, ended.clean);
  forget_job();
}

void Server::launch_failed(const Error& why) {
  const auto fault = fault_of(why);
  // A launch that fails before its clearing is over fails for what is left.
  const bool left = job_->is<Clearing>();
  job_->main.reset();
  link_.send(wire::LaunchFailed{job_->number, fault, why.message(), left});
  say("event=launch_failed {} fault={} reason={}", job_->name,
      fault == wire::Fault::user ? "user" : "infrastructure", value(why.message()));
  forget_job();
}

void Server::forget_job() {
  job_.reset();
  ::malloc_trim(0);
  if (leaving_) return leave(*leaving_);
  link_.resume();
}

}  // namespace glidepod::glue
