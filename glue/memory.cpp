#include "glue/memory.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "lib/base/file.hpp"
#include "lib/base/text.hpp"

namespace glidepod::glue {

namespace {

// Version 1 says "no limit" by the largest number of whole pages.
constexpr std::int64_t k_no_limit = std::int64_t{1} << 60;

Fd open(const std::string& path) {
  return Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

// Such a file is written anew for whoever reads it from its start.
std::string text_of(const Fd& file) {
  std::array<char, 4096> text;
  const ssize_t got = ::pread(file.get(), text.data(), text.size(), 0);
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
}

}  // namespace

std::optional<std::uint64_t> counter_in(std::string_view text, std::string_view word) {
  for (const auto& line : split(text, '\n')) {
    const auto blank = line.find(' ');
    if (blank == std::string::npos || std::string_view(line).substr(0, blank) != word) continue;
    const auto number = parse_integer(trim(std::string_view(line).substr(blank)));
    if (number && number.value() >= 0) return static_cast<std::uint64_t>(number.value());
  }
  return std::nullopt;
}

std::int64_t limit_kib_in(std::string_view text) {
  const auto bytes = parse_integer(trim(text));
  return bytes && bytes.value() > 0 && bytes.value() < k_no_limit ? bytes.value() / 1024 : 0;
}

std::optional<std::string> group_in(std::string_view cgroup, std::string_view controller) {
  for (const auto& line : split(cgroup, '\n')) {  // "4:memory:/path", "0::/path"
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const auto names = split(std::string_view(line).substr(first + 1, second - first - 1), ',');
    const std::string path = line.substr(second + 1);
    for (const auto& name : names) {
      if (name != controller) continue;
      if (!path.starts_with('/') || (path + "/").find("/../") != std::string::npos) return std::nullopt;
      return path == "/" ? "" : path;
    }
  }
  return std::nullopt;
}

ControlGroup::ControlGroup(const std::string& mounts) {
  const auto own = read_file("/proc/self/cgroup", 65536);
  // A container mostly sees its group as the root of the mount, whatever its path says.
  const auto look = [&](const std::string& mount, std::string_view controller, const char* events,
                        const char* limit) {
    for (const auto& group : {group_in(own ? own.value() : "", controller), std::optional<std::string>("")}) {
      if (!group) continue;
      const std::string folder = mount + *group;
      events_ = open(folder + events);
      if (!events_) continue;
      limit_ = open(folder + limit);
      failures_ = open(folder + "/memory.failcnt");  // version 1
      stat_ = open(folder + "/memory.stat");
      return true;
    }
    return false;
  };
  version_2_ = look(mounts, "", "/memory.events", "/memory.max");
  if (!version_2_) look(mounts + "/memory", "memory", "/memory.oom_control", "/memory.limit_in_bytes");
}

MemoryState ControlGroup::read() const {
  if (!events_) return {};
  const std::string events = text_of(events_);
  MemoryState state;
  state.oom_kills = counter_in(events, "oom_kill").value_or(0);
  if (version_2_) {
    state.limit_reached = counter_in(events, "oom").value_or(0);
  } else {
    const auto failures = parse_integer(trim(text_of(failures_)));
    state.limit_reached = failures ? static_cast<std::uint64_t>(failures.value()) : 0;
  }
  state.limit_kib = limit_kib_in(text_of(limit_));
  return state;
}

std::int64_t ControlGroup::used_kib() const {
  const std::string text = text_of(stat_);
  const auto kib_of = [&](std::string_view word) { return counter_in(text, word).value_or(0) / 1024; };
  const std::uint64_t kib =
      version_2_ ? kib_of("anon") + kib_of("shmem") : kib_of("total_rss") + kib_of("total_shmem");
  return static_cast<std::int64_t>(kib);
}

MemoryUse use_between(const MemoryState& before, const MemoryState& after) {
  MemoryUse use;
  use.limit_kib = after.limit_kib;
  if (after.oom_kills <= before.oom_kills) return use;
  use.oom_kills = static_cast<std::uint32_t>(after.oom_kills - before.oom_kills);
  if (after.limit_reached > before.limit_reached) use.peak_kib = after.limit_kib;
  return use;
}

}  // namespace glidepod::glue
