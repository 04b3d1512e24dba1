#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/fd.hpp"
#include "lib/base/result.hpp"
#include "lib/wire/messages.hpp"

namespace glidepod::agent {

// The name of a starter's process.
constexpr std::string_view k_starter = "condor_starter";

// What to do with a request that failed.
enum class OnFailure : std::uint8_t {
  tell,    // the client, which ends with the message
  vacate,  // have HTCondor's starter give the job back to the queue; the client waits for that
};
// parent is the name of the client's parent process. A test is not the job, nor is HTCondor's probe, for
// which the startd waits.
OnFailure on_failure(bool of_job, wire::Fault fault, std::string_view parent);

// The parent's number in a line of /proc/PID/stat, whatever the process calls itself.
Result<pid_t> parent_of(std::string_view stat_line);

// The real user's number in /proc/PID/status.
Result<uid_t> user_of(std::string_view status);

// The parent of a process: its name, its user, and a pidfd, so that it cannot be taken for another later.
struct Parent {
  std::string name;
  pid_t pid = 0;
  uid_t uid = 0;
  Fd pidfd;
};
Result<Parent> find_parent(pid_t process);

bool is_starter(pid_t process);

// The starters that the daemons of this master have. The kernel knows whose child a process is, whatever a
// job calls itself; one built without CONFIG_PROC_CHILDREN tells nothing, and none is found.
std::vector<pid_t> starters_of(pid_t master);

// Has a starter give its job back, as its startd would: softly, with the job's own signal, time to end and
// files that it saved, which a starter that is at it already passes over; fast; or, where it has not done so
// in time, by its own end, of which the startd takes care.
enum class Vacating : std::uint8_t { softly, fast, killed };
Result<void> vacate(const Parent& starter, Vacating how);

}  // namespace glidepod::agent
