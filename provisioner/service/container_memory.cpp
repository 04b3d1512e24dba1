#include "provisioner/service/container_memory.hpp"

#include "lib/base/file.hpp"
#include "lib/base/text.hpp"

namespace glidepod::provisioner {

namespace {

constexpr std::int64_t k_no_limit = std::int64_t{1} << 60;  // version 1 has a number there in any case

std::optional<std::int64_t> number_in(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return std::nullopt;
  const auto number = parse_integer(trim(text.value()));
  return number ? std::optional(number.value()) : std::nullopt;
}

// Of "NAME NUMBER" lines.
std::int64_t stat_in(const std::string& path, std::string_view name) {
  const auto text = read_file(path);
  if (!text) return 0;
  for (const auto& line : split(text.value(), '\n')) {
    const auto space = line.find(' ');
    if (space == std::string::npos || std::string_view(line).substr(0, space) != name) continue;
    const auto number = parse_integer(std::string_view(line).substr(space + 1));
    return number ? number.value() : 0;
  }
  return 0;
}

}  // namespace

std::optional<ContainerMemory> container_memory(const std::string& cgroups) {
  auto folder = cgroups + "/memory.";
  auto used = number_in(folder + "current");
  const bool second = used.has_value();
  if (!second) {
    folder = cgroups + "/memory/memory.";
    used = number_in(folder + "usage_in_bytes");
  }
  if (!used) return std::nullopt;
  // What the kernel keeps of files goes as soon as room is needed: so counts the kubelet.
  const auto files = stat_in(folder + "stat", second ? "inactive_file" : "total_inactive_file");
  const auto limit = number_in(folder + (second ? "max" : "limit_in_bytes")).value_or(0);
  return ContainerMemory{*used > files ? *used - files : 0, limit < k_no_limit ? limit : 0};
}

}  // namespace glidepod::provisioner
