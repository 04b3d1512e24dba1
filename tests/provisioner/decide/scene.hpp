#pragma once

#include <string>

#include "tests/provisioner/decide/inputs.hpp"
#include "tests/provisioner/group.hpp"

// Inputs of a decision in a few words.
namespace glidepod::provisioner::decide_test {

inline constexpr Time k_now{Seconds(1'000'000)};

struct Scene : Inputs {
  GroupDemand& jobs(std::int64_t cpus, std::int64_t idle, const std::string& owner = "alice") {
    auto& d = demand.groups[group(cpus)];
    d.idle += idle;
    d.owners[owner] += idle;
    return d;
  }
  GroupSupply& pods(std::int64_t cpus, std::int64_t waiting, std::int64_t unmatched, std::int64_t claimed) {
    auto& s = supply.groups[group(cpus)];
    s.waiting = waiting;
    s.unmatched = unmatched;
    s.claimed = claimed;
    return s;
  }
  PolicySettings& rules() { return policy.settings; }
};

}  // namespace glidepod::provisioner::decide_test
