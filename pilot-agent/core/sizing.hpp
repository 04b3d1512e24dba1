#pragma once

#include <map>
#include <string>
#include <vector>

#include "pilot-agent/core/sizes.hpp"
#include "pilot-agent/core/types.hpp"

namespace glidepod::agent {

// A container is being given its job's size, and the idle ones what is left.
struct Sizing {
  std::string container;
  Amount slot;
  Time answers_by, until;
  // What the glues have in use comes first, where a limit is to be lowered: by the numbers of the questions
  // without an answer, and by container.
  std::map<std::uint64_t, std::string> questions = {};
  std::map<std::string, std::int64_t> used_kib = {};
  std::vector<kube::SizeChange> grow = {};    // what is asked for when `asked` is in force
  std::vector<kube::SizeChange> asked = {};   // at present
  std::map<std::string, Amount> before = {};  // limits in the spec until then
  std::uint64_t attempt = 0;
  bool answered = false;  // the API has taken it
  // Its status may show the size from before another one that was asked meanwhile, which is not in force yet:
  // it has to be of this generation.
  bool doubtful = false;
  std::int64_t generation = 0;  // of the pod then
};

}  // namespace glidepod::agent
