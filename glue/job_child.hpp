#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "glue/privileges.hpp"
#include "glue/seccomp.hpp"
#include "lib/wire/messages.hpp"

namespace glidepod::glue {

// What stands between fork and the job's first instruction, in this order.
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
  std::int32_t candidate = -1;  // program: the file that was there but could not be executed
  // That file's own, as a script names it in its first line, ending with a NUL; empty: it names none.
  std::array<char, 128> interpreter{};
};

// Errors of execve(2) that another node, or the same one later, may not have.
bool is_passing(int code);

// Everything made ready before the fork; the child allocates as little as it can.
struct ChildPlan {
  std::array<int, 3> stdio{-1, -1, -1};
  bool terminal = false;  // stdio is to be its controlling terminal
  int program_fd = -1;    // executed instead of the candidates
  int report_fd = -1;
  pid_t parent = -1;
  User user;
  unsigned umask = 022;
  std::string cwd;
  std::string marker;
  std::vector<wire::Limit> limits;
  std::vector<char*> argv;  // nullptr at the end, as are environment
  std::vector<char*> environment;
  std::vector<std::string> candidates;
  std::string oom_score_adjustment;
  const Filter* filter = nullptr;
};

// Starts a child that becomes the job; -1 and errno if there is none. It is born with the job's groups:
// HTCondor's procd tells a job's processes by a group and looks at a process's groups only once, when it
// first sees it (proc_family_monitor.cpp, snapshot()); one that got its groups later would be nobody's,
// neither accounted nor killed.
pid_t start_child(const ChildPlan& plan);

}  // namespace glidepod::glue
