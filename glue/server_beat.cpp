// What the agent hears of a job with every Beat: the container's memory, and what the job has on disk.

#include "glue/server.hpp"

namespace glidepod::glue {

// The answer does not wait for a count, but has what the last one found.
void Server::on_beat(const wire::Beat& beat) {
  wire::Beat answer{.number = beat.number, .memory_kib = control_group_->used_kib()};
  if (job_ && job_->counting) {
    answer.disk_kib = job_->counting->result().kib;
    answer.disk_complete = job_->counting->result().complete;
  }
  link_.send(answer);
  if (job_ && job_->stage == Job::Stage::running && !job_->suspended) count_disk();
}

void Server::count_disk() {
  if (!job_->counting) job_->counting.emplace(user_of(job_->launch), options_.counting);
  if (!job_->counting->begin(Loop::now())) return;
  job_->counting_timer = loop_.after(options_.counting.hung, [this] { job_->counting->kill(); });
}

bool Server::was_count(pid_t pid) {
  if (!job_->counting || !job_->counting->ended(pid, Loop::now())) return false;
  loop_.cancel(job_->counting_timer);
  return true;
}

}  // namespace glidepod::glue
