#include "podhost/runtime/memory.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "lib/base/file.hpp"
#include "lib/base/text.hpp"

namespace glidepod::podhost {

std::int64_t memory_in_use(pid_t process, const std::string& proc, const std::string& mount) {
  const auto groups = read_file(fmt::format("{}/{}/cgroup", proc, process), 65536);
  if (!groups) return 0;
  constexpr std::string_view k_version_2 = "0::";
  for (const auto& line : split(groups.value(), '\n')) {
    if (!line.starts_with(k_version_2)) continue;
    const auto stat = read_file(mount + line.substr(k_version_2.size()) + "/memory.stat", 65536);
    if (!stat) return 0;
    std::int64_t bytes = 0;
    for (const auto& entry : split(stat.value(), '\n'))
      for (const std::string_view word : {"anon ", "shmem "})
        if (const auto number = parse_integer(entry.substr(std::min(word.size(), entry.size())));
            entry.starts_with(word) && number)
          bytes += number.value();
    return bytes;
  }
  return 0;
}

bool swap_is_limited(const std::string& mount) {
  return ::access((mount + "/memory/memory.memsw.limit_in_bytes").c_str(), F_OK) == 0;
}

}  // namespace glidepod::podhost
