#pragma once

#include <map>
#include <string>

#include "provisioner/decide/decide.hpp"

namespace glidepod::provisioner {

// What the log says of each plan: its decisions, and once what begins and ends with it.
class DecisionLog {
 public:
  void decided(const Plan& plan);

 private:
  std::map<std::string, Time> avoided_;        // nodes, since when
  std::map<std::string, std::string> unseen_;  // places, why
  std::optional<std::string> equal_shares_;
};

}  // namespace glidepod::provisioner
