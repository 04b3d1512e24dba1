#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "lib/base/loop.hpp"
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

// Sends the signal to every descendant of this process, again until no new one is found.
void signal_descendants(int number);

// Called for every process that was reaped, with wait(2)'s status.
using Reaped = std::function<void(pid_t pid, int status, const rusage& usage)>;

// Reaps what has ended, without waiting; true when this process has no child left.
bool reap(const Reaped& reaped);

struct Ending {
  bool complete = false;     // nothing is left
  std::uint32_t killed = 0;  // processes
};
// Kills and reaps every descendant of this process, however it tries to get away, within the limit.
Ending end_descendants(Milliseconds limit, const Reaped& reaped);

}  // namespace glidepod::glue
