#include "pilot-agent/starter.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "lib/base/file.hpp"
#include "lib/base/text.hpp"

namespace glidepod::agent {
namespace {

// Of its main thread, which is the one that starts processes in HTCondor's daemons.
std::vector<pid_t> children_of(pid_t process) {
  constexpr std::size_t k_most_bytes = std::size_t{1} << 20;
  std::vector<pid_t> children;
  const auto list = read_file(fmt::format("/proc/{0}/task/{0}/children", process), k_most_bytes);
  if (!list) return children;  // it has ended
  for (const auto& word : split(trim(list.value()), ' '))
    if (const auto child = parse_integer(word)) children.push_back(static_cast<pid_t>(child.value()));
  return children;
}

}  // namespace

OnFailure on_failure(bool of_job, wire::Fault fault, std::string_view parent) {
  // HTCondor 23.9 takes any exit of the command for the job's own.
  return of_job && fault == wire::Fault::infrastructure && parent == k_starter ? OnFailure::vacate
                                                                               : OnFailure::tell;
}

Result<pid_t> parent_of(std::string_view line) {
  const auto bracket = line.rfind(')');  // the name before it may hold anything
  if (bracket == std::string_view::npos) return error("unexpected /proc/PID/stat");
  const auto fields = split(trim(line.substr(bracket + 1)), ' ');
  if (fields.size() < 2) return error("unexpected /proc/PID/stat");
  return static_cast<pid_t>(TRY(parse_integer(fields[1])));
}

Result<uid_t> user_of(std::string_view status) {
  for (const auto& line : split(status, '\n'))
    if (const auto words = split(line, '\t'); words.size() > 1 && words[0] == "Uid:")
      return static_cast<uid_t>(TRY(parse_integer(words[1])));
  return error("unexpected /proc/PID/status");
}

Result<Parent> find_parent(pid_t process) {
  const std::string stat = fmt::format("/proc/{}/stat", process);
  Parent parent;
  parent.pid = TRY(parent_of(TRY(read_file(stat, 4096))));
  parent.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, parent.pid, 0)));
  if (!parent.pidfd) return Error::system("pidfd of process {}", parent.pid);
  parent.name = trim(TRY(read_file(fmt::format("/proc/{}/comm", parent.pid), 64)));
  parent.uid = TRY(user_of(TRY(read_file(fmt::format("/proc/{}/status", parent.pid), 65536))));
  // Still the parent, so the name was read of the process that the pidfd holds.
  if (TRY(parent_of(TRY(read_file(stat, 4096)))) != parent.pid)
    return error("process {} lost its parent", process);
  return parent;
}

bool is_starter(pid_t process) {
  const auto name = read_file(fmt::format("/proc/{}/comm", process), 64);
  return name && trim(name.value()) == k_starter;
}

std::vector<pid_t> starters_of(pid_t master) {
  std::vector<pid_t> starters;
  for (const pid_t daemon : children_of(master))
    std::ranges::copy_if(children_of(daemon), std::back_inserter(starters), is_starter);
  return starters;
}

Result<void> vacate(const Parent& starter, Vacating how) {
  const int number = how == Vacating::softly ? SIGTERM : how == Vacating::fast ? SIGQUIT : SIGKILL;
  if (::syscall(SYS_pidfd_send_signal, starter.pidfd.get(), number, nullptr, 0) != 0)
    return Error::system("signal starter {}", starter.pid);
  return {};
}

}  // namespace glidepod::agent
