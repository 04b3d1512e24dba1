#include "pilot-agent/known_jobs.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include "pilot-agent/starter.hpp"

namespace glidepod::agent {

Result<SandboxJob> KnownJobs::identify(const wire::Bind& bind, pid_t client) {
  auto written = read_job(scratch_, bind.work_directory, trusted_);
  if (written) return written;
  auto starter = find_parent(client);
  // The slot's user can give a process any name, but not another user.
  if (!starter || starter->name != k_starter || (starter->uid != 0 && starter->uid != trusted_))
    return written;
  std::erase_if(told_, [](const auto& entry) {
    return ::syscall(SYS_pidfd_send_signal, entry.second.starter.get(), 0, nullptr, 0) != 0;
  });
  if (!bind.job_ad.empty())
    told_[starter->pid] = {std::move(starter->pidfd), job_of(bind.job_ad, bind.machine_ad)};
  const auto found = told_.find(starter->pid);
  if (found == told_.end()) return written;
  return found->second.job;
}

}  // namespace glidepod::agent
