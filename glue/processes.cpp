#include "glue/processes.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <unordered_set>

#include "lib/base/fd.hpp"

namespace glidepod::glue {

namespace {

// For signals that are not the end: how long to look for processes that the signal has not reached.
constexpr Milliseconds k_signal_limit = std::chrono::seconds(2);
// Descriptors held at once while waiting for killed processes, far below any limit on open files.
constexpr std::size_t k_most_waited = 200;

template <typename T>
bool number_at(const std::vector<std::string_view>& fields, std::size_t index, T* value) {
  if (index >= fields.size()) return false;
  const auto text = fields[index];
  return std::from_chars(text.data(), text.data() + text.size(), *value).ec == std::errc();
}

std::optional<ProcessStat> stat_of(pid_t pid) {
  std::array<char, 32> path;
  *fmt::format_to(path.data(), "/proc/{}/stat", pid) = '\0';
  const Fd fd(::open(path.data(), O_RDONLY | O_CLOEXEC));
  if (!fd) return std::nullopt;
  std::array<char, 1024> line;
  const ssize_t got = ::read(fd.get(), line.data(), line.size());
  if (got <= 0) return std::nullopt;
  return parse_stat({line.data(), static_cast<std::size_t>(got)});
}

// A process by descriptor, once it is certain that it still is the one that was listed.
Fd open_process(const ProcessStat& process) {
  Fd fd(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
  if (!fd) return fd;
  const auto now = stat_of(process.pid);
  if (!now || now->start_time != process.start_time) fd.reset();
  return fd;
}

bool send(const Fd& process, int number) {
  return ::syscall(SYS_pidfd_send_signal, process.get(), number, nullptr, 0) == 0;
}

// A pid and its start time.
using Identity = std::pair<pid_t, std::uint64_t>;

std::vector<ProcessStat> own_descendants() {
  auto all = all_processes();
  return all ? descendants_of(::getpid(), std::move(all).value()) : std::vector<ProcessStat>();
}

bool runs(const ProcessStat& process) {
  return process.state == 'R' || process.state == 'S';
}

// Signals everything that lives below this process until a pass finds nothing new. Stopped processes keep
// their place under a limit on processes, so even a fork bomb comes to rest; killing at once would make room
// for its next generation. For SIGSTOP everything must also be seen not to run: a fork that has begun is
// completed before the signal acts, and its child is not in /proc until then.
std::vector<ProcessStat> signal_all(int number, SteadyTime deadline) {
  std::set<Identity> known;
  std::vector<ProcessStat> found;
  for (bool again = true; again; again = again && std::chrono::steady_clock::now() < deadline) {
    found = own_descendants();
    again = false;
    for (const auto& process : found) {
      if (process.ended()) continue;
      const bool is_new = known.insert({process.pid, process.start_time}).second;
      const bool must_stop = number == SIGSTOP && runs(process);
      again |= is_new || must_stop;
      if (!is_new && !must_stop) continue;
      if (const Fd fd = open_process(process)) send(fd, number);
    }
    // The signalled need the processor to act on it.
    if (again) ::sched_yield();
  }
  return found;
}

int milliseconds_until(SteadyTime deadline) {
  const auto left = std::chrono::ceil<Milliseconds>(deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::max<std::int64_t>(0, left.count()));
}

void wait_for(const std::vector<Fd>& processes, SteadyTime deadline) {
  for (const Fd& process : processes) {
    pollfd wait{.fd = process.get(), .events = POLLIN, .revents = 0};
    ::poll(&wait, 1, milliseconds_until(deadline));
  }
}

// What was killed may be on its way from a dead parent to this process: its SIGCHLD tells.
void wait_for_child(SteadyTime deadline) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  const int left = milliseconds_until(deadline);
  const timespec time{.tv_sec = left / 1000, .tv_nsec = (left % 1000) * 1000000L};
  ::sigtimedwait(&set, nullptr, &time);
}

}  // namespace

std::optional<ProcessStat> parse_stat(std::string_view line) {
  ProcessStat stat;
  const auto open = line.find(" (");
  const auto close = line.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::nullopt;
  if (std::from_chars(line.data(), line.data() + open, stat.pid).ec != std::errc()) return std::nullopt;
  std::vector<std::string_view> fields;  // from the third on: state, ppid, ...
  for (auto rest = line.substr(close + 1); !rest.empty();) {
    const auto start = rest.find_first_not_of(" \n");
    if (start == std::string_view::npos) break;
    rest.remove_prefix(start);
    const auto end = std::min(rest.find_first_of(" \n"), rest.size());
    fields.push_back(rest.substr(0, end));
    rest.remove_prefix(end);
  }
  if (fields.empty() || fields[0].size() != 1) return std::nullopt;
  stat.state = fields[0][0];
  if (!number_at(fields, 1, &stat.parent) || !number_at(fields, 17, &stat.threads) ||
      !number_at(fields, 19, &stat.start_time))
    return std::nullopt;
  return stat;
}

std::vector<ProcessStat> descendants_of(pid_t root, std::vector<ProcessStat> all) {
  std::ranges::sort(all, {}, &ProcessStat::parent);
  std::vector<ProcessStat> result;
  std::unordered_set<pid_t> seen{root};
  const auto add_children = [&](pid_t parent) {
    // Not std::ranges::equal_range: clang 14 cannot compile the subrange of this C++ library.
    auto child = std::ranges::lower_bound(all, parent, {}, &ProcessStat::parent);
    for (; child != all.end() && child->parent == parent; ++child)
      if (seen.insert(child->pid).second) result.push_back(*child);
  };
  add_children(root);
  // By index: the vector grows while it is walked.
  for (std::size_t i = 0; i < result.size(); ++i) add_children(result[i].pid);
  return result;
}

Result<std::vector<ProcessStat>> all_processes() {
  DIR* folder = ::opendir("/proc");
  if (folder == nullptr) return Error::system("open /proc");
  std::vector<ProcessStat> result;
  while (const dirent* entry = ::readdir(folder)) {
    pid_t pid = 0;
    const std::string_view name = entry->d_name;
    const auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (failure != std::errc() || end != name.data() + name.size()) continue;
    if (const auto stat = stat_of(pid)) result.push_back(*stat);
  }
  ::closedir(folder);
  return result;
}

void signal_descendants(int number) {
  signal_all(number, std::chrono::steady_clock::now() + k_signal_limit);
}

bool reap(const Reaped& reaped) {
  while (true) {
    int status = 0;
    rusage usage{};
    const pid_t pid = ::wait4(-1, &status, WNOHANG, &usage);
    if (pid > 0) {
      reaped(pid, status, usage);
    } else if (pid == 0) {
      return false;
    } else if (errno != EINTR) {
      return true;  // ECHILD: every descendant's line of parents leads to a child, so there is none either
    }
  }
}

Ending end_descendants(Milliseconds limit, const Reaped& reaped) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  Ending ending;
  std::set<Identity> killed;
  while (!(ending.complete = reap(reaped)) && std::chrono::steady_clock::now() < deadline) {
    std::vector<Fd> dying;
    for (const auto& process : signal_all(SIGSTOP, deadline)) {
      Fd fd = open_process(process);
      if (!fd || !send(fd, SIGKILL)) continue;
      if (!process.ended() && killed.insert({process.pid, process.start_time}).second) ++ending.killed;
      if (dying.size() < k_most_waited) dying.push_back(std::move(fd));
    }
    if (dying.empty()) wait_for_child(deadline);
    wait_for(dying, deadline);
  }
  return ending;
}

}  // namespace glidepod::glue
