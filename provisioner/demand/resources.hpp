#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace glidepod::provisioner {

// Stands for what nobody limits: more than there can be.
inline constexpr std::int64_t k_unlimited = std::int64_t{1} << 60;

// What a pod asks a cluster for, a job asks a pod for, or either has left. pods: jobs, where a pod is meant.
struct Resources {
  std::int64_t cpu_milli = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t disk_bytes = 0;
  std::int64_t gpus = 0;
  std::int64_t pods = 1;
  // What its containers may use at most, which quotas may limit, too; nodes do not.
  std::int64_t limit_cpu_milli = 0, limit_memory_bytes = 0;
  // GPUs that are another resource than nvidia.com/gpu, by its name: gpus are those. What a cluster does not
  // name here it does not limit.
  std::map<std::string, std::int64_t> devices = {};

  // How often other fits into this, up to most.
  std::int64_t holds(const Resources& other, std::int64_t most) const;
  Resources minus(const Resources& other, std::int64_t times = 1) const;
  // Of each the larger.
  Resources widened_to(const Resources& other) const;
};

// Of a job, by HTCondor's numbers: rounded up as its slot is (memory to 128 MB; up to 2 MiB more disk).
Resources of_job(std::int64_t cpus, std::int64_t memory_mb, std::int64_t disk_kb, std::int64_t gpus);
// Of a slot: what is left for that many jobs.
Resources of_slot(std::int64_t cpus, std::int64_t memory_mb, std::int64_t disk_kb, std::int64_t gpus,
                  std::int64_t jobs);

}  // namespace glidepod::provisioner
