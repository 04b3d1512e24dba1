#include "provisioner/demand/group.hpp"

#include "lib/base/text.hpp"

namespace glidepod::provisioner {

std::uint64_t stable_hash(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

std::string Group::name() const {
  return fmt::format("{};{};{};{};{};{};{}", cpus, memory_mb, disk_kb, disk_volumes, gpus, gpu_types, labels);
}

std::string Group::hash() const {
  return fmt::format("{:016x}", stable_hash(name()));
}

std::int64_t to_bucket(std::int64_t size, const List& buckets) {
  std::int64_t last = 0;
  for (const auto& text : buckets) {
    last = parse_integer(text).value();
    if (size <= last) return last;
  }
  return last == 0 ? size : (size + last - 1) / last * last;
}

}  // namespace glidepod::provisioner
