#include "pilot-agent/sandbox.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "lib/base/beneath.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text.hpp"
#include "pilot-agent/bind_plan.hpp"

namespace glidepod::agent {
namespace {

constexpr std::size_t k_longest_ad = std::size_t{1} << 20;

Result<std::string> read_ad(const Fd& folder, const std::string& name, uid_t trusted) {
  // Opening a pipe must not wait for its other end.
  const Fd file = open_beneath(folder, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!file) return Error::system("open {}", name);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return Error::system("stat {}", name);
  if (!S_ISREG(info.st_mode)) return error("{} is not a regular file", name);
  if (info.st_uid != 0 && info.st_uid != trusted) return error("{} belongs to user {}", name, info.st_uid);
  return read_all(file, name, k_longest_ad);
}

// CPUs or MiB: more than any machine has.
constexpr std::int64_t k_most = std::int64_t{1} << 40;

}  // namespace

SandboxJob job_of(std::string_view job_ad, std::string_view machine_ad) {
  SandboxJob job{
      condor::parse_job_ad(job_ad), condor::slot_disk_kib(machine_ad), condor::slot_name(machine_ad), {}};
  const std::int64_t cpus = condor::slot_cpus(machine_ad), memory_mib = condor::slot_memory_mib(machine_ad);
  if (cpus <= k_most && memory_mib <= k_most) job.slot_size = {cpus * 1000, memory_mib << 20};
  job.whole = cpus == 0 || cpus >= condor::slot_total_cpus(machine_ad);
  if (job.disk_kib == 0) job.disk_kib = job.identity.request_disk_kib;
  return job;
}

Result<SandboxJob> read_job(const std::string& scratch, const std::string& sandbox, uid_t trusted) {
  if (sandbox.empty() || !inside(sandbox, scratch))
    return error("sandbox '{}' is not inside {}", sandbox, scratch);
  const auto parts = split(sandbox.substr(scratch.size()), '/');
  if (std::ranges::find(parts, "..") != parts.end()) return error("sandbox '{}' has a '..' in it", sandbox);
  const Fd root = TRY(open_file(scratch, O_PATH | O_DIRECTORY));
  const Fd folder = open_beneath(root, "." + sandbox.substr(scratch.size()), O_PATH | O_DIRECTORY);
  if (!folder) return Error::system("open {}", sandbox);
  const std::string job = TRY(read_ad(folder, ".job.ad", trusted));
  const auto machine = read_ad(folder, ".machine.ad", trusted);
  return job_of(job, machine ? machine.value() : std::string());
}

}  // namespace glidepod::agent
