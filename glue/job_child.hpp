#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "glue/privileges.hpp"
#include "glue/seccomp.hpp"
#include "lib/wire/messages.hpp"

namespace glidepod::glue {

// The steps between fork and the job's first instruction, in their order.
enum class Step : std::int32_t {
  session,
  descriptors,
  terminal,
  bounding_set,
  user,
  capabilities,
  no_new_privileges,
  directory,
  marker,
  limits,
  filter,
  program,
};

// What the child writes into the report pipe when a step fails; success is the pipe's end.
struct ChildReport {
  Step step{};
  std::int32_t code = 0;        // errno
  std::int32_t candidate = -1;  // for the step program: the file that was there but could not be executed
  // The interpreter that this file names in its first line, ending with a NUL; empty: it names none.
  std::array<char, 128> interpreter{};
};

// Whether this error of execve(2) may not happen on another node, or on the same one later.
bool is_passing(int code);

// All that is made ready before the fork, since the child should allocate as little as possible.
struct ChildPlan {
  std::array<int, 3> stdio{-1, -1, -1};
  bool terminal = false;  // stdin is to be the child's controlling terminal
  int program_fd = -1;    // executed instead of the candidates
  int report_fd = -1;
  pid_t parent = -1;
  User user;
  unsigned umask = 022;
  std::string cwd;
  std::string marker;
  std::vector<wire::Limit> limits;
  std::vector<char*> argv;  // with nullptr at the end, like environment
  std::vector<char*> environment;
  std::vector<std::string> candidates;
  bool own_names = false;  // each candidate is its own argv[0]
  std::string oom_score_adjustment;
  const Filter* filter = nullptr;
};

// Starts a child that becomes the job; -1 and errno if that fails. The child has the job's groups from the
// beginning. HTCondor's procd knows a job's processes by a group, and looks at a process's groups only once,
// when it first sees the process (proc_family_monitor.cpp, snapshot()). A process that got its groups later
// would neither be accounted nor killed.
pid_t start_child(const ChildPlan& plan);

}  // namespace glidepod::glue
