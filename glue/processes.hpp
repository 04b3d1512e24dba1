#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "lib/base/fd.hpp"
#include "lib/base/result.hpp"

namespace glidepod::glue {

// A line of /proc/PID/stat. A pid and its start time together name one process for ever.
struct ProcessStat {
  pid_t pid = 0;
  pid_t parent = 0;
  char state = '?';
  int threads = 0;
  std::uint64_t start_time = 0;  // clock ticks since boot
  bool operator==(const ProcessStat&) const = default;

  // A leader that ended while its other threads live is shown as a zombie too.
  bool ended() const { return (state == 'Z' || state == 'X') && threads <= 1; }
};

// The program's name in the line may hold anything: blanks, brackets, line ends.
std::optional<ProcessStat> parse_stat(std::string_view line);

// The children of root, their children and so on among all, root itself not.
std::vector<ProcessStat> descendants_of(pid_t root, std::vector<ProcessStat> all);

// All processes that /proc shows.
Result<std::vector<ProcessStat>> all_processes();

// All that descend from this process.
std::vector<ProcessStat> own_descendants();
// Its children: far faster than a pass over /proc, where the kernel has it (CONFIG_PROC_CHILDREN).
std::vector<pid_t> own_children();
// To a child that was not reaped yet: the pid is still its own.
void signal_child(pid_t pid, int number);

// A process by descriptor, once it is certain that it still is the one that was listed; else an invalid Fd.
Fd open_process(const ProcessStat& process);
bool send_signal(const Fd& process, int number);

// Called for every process that was reaped, with wait(2)'s status.
using Reaped = std::function<void(pid_t pid, int status, const rusage& usage)>;

// How many processes are reaped at a time, so that a loop has time for the rest.
inline constexpr std::size_t k_reaped_at_once = 256;

// What this process has for children after reaping.
enum class Children : std::uint8_t {
  none,     // so it has no descendant either: every line of parents leads to a child
  living,   // none of them has ended
  unknown,  // as many were reaped as were allowed; there may be more
};
// Reaps what has ended, without waiting, but no more than this: processes that replace themselves can end as
// fast as they are reaped. What has made this process its tracer is let go and goes on (let_go()).
Children reap(std::size_t most, const Reaped& reaped);

}  // namespace glidepod::glue
