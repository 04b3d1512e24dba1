#include "glue/processes.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_set>

#include "lib/base/child.hpp"
#include "lib/base/fd.hpp"
#include "lib/base/file.hpp"

namespace glidepod::glue {

namespace {

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

std::vector<ProcessStat> own_descendants() {
  auto all = all_processes();
  return all ? descendants_of(::getpid(), std::move(all).value()) : std::vector<ProcessStat>();
}

std::vector<pid_t> own_children() {
  std::vector<pid_t> children;
  const auto list = read_file(fmt::format("/proc/self/task/{}/children", ::getpid()));
  if (!list) {
    for (const auto& process : own_descendants())
      if (process.parent == ::getpid()) children.push_back(process.pid);
    return children;
  }
  const char* at = list->data();
  const char* const end = at + list->size();
  for (pid_t pid = 0; at < end; ++at) {
    const auto [after, failure] = std::from_chars(at, end, pid);
    if (failure == std::errc() && pid > 0) children.push_back(pid);
    at = std::max(at, after);
  }
  return children;
}

void signal_child(pid_t pid, int number) {
  ::kill(pid, number);
}

Fd open_process(const ProcessStat& process) {
  Fd fd(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
  if (!fd) return fd;
  const auto now = stat_of(process.pid);
  if (!now || now->start_time != process.start_time) fd.reset();
  return fd;
}

bool send_signal(const Fd& process, int number) {
  return ::syscall(SYS_pidfd_send_signal, process.get(), number, nullptr, 0) == 0;
}

Children reap(std::size_t most, const Reaped& reaped) {
  for (std::size_t count = 0; count < most;) {
    // Whom it is about is looked at first: a single thread that made this process its tracer is told of by
    // its own number, with the usage of all of its process, which is counted when that ends.
    siginfo_t next{};
    if (::waitid(P_ALL, 0, &next, WEXITED | WNOHANG | WNOWAIT) != 0) {
      if (errno == EINTR) continue;
      return Children::none;  // ECHILD
    }
    const pid_t pid = next.si_pid;
    if (pid == 0) return Children::living;
    const bool is_process = ::syscall(SYS_tgkill, pid, pid, 0) == 0 || errno != ESRCH;
    int status = 0;
    rusage usage{};
    ++count;
    if (::wait4(pid, &status, WNOHANG | __WALL, &usage) != pid) continue;  // it goes on, to its end
    if (!let_go(pid, status) && is_process) reaped(pid, status, usage);
  }
  return Children::unknown;
}

}  // namespace glidepod::glue
