#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "lib/base/shared_text.hpp"
#include "provisioner/settings/settings.hpp"

namespace glidepod::provisioner {

// What the pods of a group are made for: jobs with the same request. Texts are in a canonical order.
struct Group {
  std::int64_t cpus = 1;
  std::int64_t memory_mb = 4096;
  std::int64_t disk_kb = 8'000'000;
  SharedText disk_volumes;  // "claim:path,claim:path"
  std::int64_t gpus = 0;
  SharedText gpu_types;  // "NVIDIA-A100-SXM4-80GB,NVIDIA-L40"
  SharedText labels;     // "node label:value,..."

  auto operator<=>(const Group&) const =
      default;  // NOLINT(modernize-use-nullptr): of what the compiler writes
  bool operator==(const Group&) const = default;

  // PRP's name of a group: "1;4096;8000000;;0;;".
  std::string name() const;
  // Sixteen hexadecimal digits of the name, the same in every run: fit for a label.
  std::string hash() const;
};

// The smallest bucket that holds the size; above the last, the next multiple of the last. No buckets: the
// size.
std::int64_t to_bucket(std::int64_t size, const List& buckets);

// FNV-1a, the same in every run and on every machine.
std::uint64_t stable_hash(std::string_view text);

}  // namespace glidepod::provisioner
