#pragma once

#include <map>
#include <string>
#include <vector>

#include "pilot-agent/core/sizes.hpp"
#include "pilot-agent/core/types.hpp"

namespace glidepod::agent {

// A resize under way: one container gets its job's size, and the idle ones share what is left.
struct Sizing {
  std::string container;
  Amount slot;
  Time answers_by, until;
  // Before a limit is lowered, the agent asks the glues how much memory their containers use. questions: the
  // containers without an answer, by the question's number. used_kib: the answers, by container.
  std::map<std::uint64_t, std::string> questions = {};
  std::map<std::string, std::int64_t> used_kib = {};
  std::vector<kube::SizeChange> grow = {};    // to be asked for when `asked` is in force
  std::vector<kube::SizeChange> asked = {};   // what the API is asked for at present
  std::map<std::string, Amount> before = {};  // the limits in the spec before that
  std::uint64_t attempt = 0;
  bool answered = false;  // the API has taken it
  // An earlier resize may not be in force yet, so the status may show these sizes from before it. Only a
  // status of this generation of the pod counts.
  bool doubtful = false;
  std::int64_t generation = 0;
};

}  // namespace glidepod::agent
