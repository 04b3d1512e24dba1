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

// A line of /proc/PID/stat. A pid and its start time together name one process uniquely.
struct ProcessStat {
  pid_t pid = 0;
  pid_t parent = 0;
  char state = '?';
  int threads = 0;
  std::uint64_t start_time = 0;  // clock ticks since boot
  bool operator==(const ProcessStat&) const = default;

  // A main thread that has ended while other threads live is shown as a zombie too.
  bool ended() const { return (state == 'Z' || state == 'X') && threads <= 1; }
};

// Parses such a line. The program's name in it may have any characters: blanks, brackets, line ends.
std::optional<ProcessStat> parse_stat(std::string_view line);

// The processes among `all` that descend from root, without root itself.
std::vector<ProcessStat> descendants_of(pid_t root, std::vector<ProcessStat> all);

// All processes that /proc shows.
Result<std::vector<ProcessStat>> all_processes();

// All processes that descend from this one.
std::vector<ProcessStat> own_descendants();
// The children of this process. If the kernel has CONFIG_PROC_CHILDREN, this is far faster than a pass over
// /proc.
std::vector<pid_t> own_children();
// Sends a signal to a child that was not reaped yet, so that the pid is still its own.
void signal_child(pid_t pid, int number);

// Opens a process, if it is certainly still the one that was listed; else an invalid Fd.
Fd open_process(const ProcessStat& process);
// False: it has ended, or there is no descriptor.
bool send_signal(const Fd& process, int number);

// Called for every process that was reaped, with wait(2)'s status.
using Reaped = std::function<void(pid_t pid, int status, const rusage& usage)>;

// The number of processes that are reaped at a time, so that a loop has time for other work.
inline constexpr std::size_t k_reaped_at_once = 256;

// The children that this process has after reaping.
enum class Children : std::uint8_t {
  none,     // it has no child, and so no descendant: the parents of each descendant lead to a child
  living,   // it has children, and none of them has ended
  unknown,  // as many were reaped as were allowed; more may have ended
};
// Reaps processes that have ended, without waiting, and at most this many: processes that replace themselves
// can end as fast as they are reaped. A process that has made this one its tracer is let go and goes on
// (let_go()).
Children reap(std::size_t most, const Reaped& reaped);

}  // namespace glidepod::glue
