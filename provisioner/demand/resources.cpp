#include "provisioner/demand/resources.hpp"

#include <algorithm>

namespace glidepod::provisioner {

namespace {

constexpr std::int64_t k_mib = std::int64_t{1} << 20;
constexpr std::int64_t k_kib = 1024;

}  // namespace

std::int64_t Resources::holds(const Resources& other, std::int64_t most) const {
  const auto limit = [&most](std::int64_t have, std::int64_t need) {
    if (need > 0) most = std::min(most, std::max<std::int64_t>(have, 0) / need);
  };
  limit(cpu_milli, other.cpu_milli);
  limit(memory_bytes, other.memory_bytes);
  limit(disk_bytes, other.disk_bytes);
  limit(gpus, other.gpus);
  limit(pods, other.pods);
  limit(limit_cpu_milli, other.limit_cpu_milli);
  limit(limit_memory_bytes, other.limit_memory_bytes);
  for (const auto& [name, need] : other.devices)
    if (const auto have = devices.find(name); have != devices.end()) limit(have->second, need);
  return most;
}

Resources Resources::minus(const Resources& other, std::int64_t times) const {
  Resources left = {cpu_milli - times * other.cpu_milli,
                    memory_bytes - times * other.memory_bytes,
                    disk_bytes - times * other.disk_bytes,
                    gpus - times * other.gpus,
                    pods - times * other.pods,
                    limit_cpu_milli - times * other.limit_cpu_milli,
                    limit_memory_bytes - times * other.limit_memory_bytes,
                    devices};
  for (auto& [name, number] : left.devices)
    if (const auto taken = other.devices.find(name); taken != other.devices.end())
      number -= times * taken->second;
  return left;
}

Resources Resources::widened_to(const Resources& other) const {
  Resources wide = {std::max(cpu_milli, other.cpu_milli),
                    std::max(memory_bytes, other.memory_bytes),
                    std::max(disk_bytes, other.disk_bytes),
                    std::max(gpus, other.gpus),
                    std::max(pods, other.pods),
                    std::max(limit_cpu_milli, other.limit_cpu_milli),
                    std::max(limit_memory_bytes, other.limit_memory_bytes),
                    devices};
  for (const auto& [name, number] : other.devices) {
    auto& own = wide.devices[name];
    own = std::max(own, number);
  }
  return wide;
}

Resources of_job(std::int64_t cpus, std::int64_t memory_mb, std::int64_t disk_kb, std::int64_t gpus) {
  return {cpus * 1000, (memory_mb + 127) / 128 * 128 * k_mib, (disk_kb + 2048) * k_kib, gpus, 1};
}

Resources of_slot(std::int64_t cpus, std::int64_t memory_mb, std::int64_t disk_kb, std::int64_t gpus,
                  std::int64_t jobs) {
  return {cpus * 1000, memory_mb * k_mib, disk_kb * k_kib, gpus, jobs};
}

}  // namespace glidepod::provisioner
