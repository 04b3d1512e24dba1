#pragma once

#include <doctest/doctest.h>

#include <random>

#include "provisioner/decide/decide.hpp"

namespace glidepod::provisioner {

// All that decide() takes.
struct Inputs {
  Demand demand;
  Supply supply;
  Capacity capacity;
  Policy policy;
  History history;
  Time now{Seconds(1'000'000)};

  Inputs() { policy.image = "img"; }
  Plan decided() const { return decide(demand, supply, capacity, policy, now, history); }
  // The same, and the next one goes on from there.
  Plan plan() {
    auto result = decided();
    history = result.history;
    return result;
  }
  Decision one() {
    auto result = plan();
    REQUIRE(result.decisions.size() == 1);
    return result.decisions[0];
  }
};

// Of any kind, by a seed. mt19937_64's numbers are the same everywhere; the standard's distributions are not,
// so only % is used.
struct RandomInputs : Inputs {
  std::mt19937_64 random;

  explicit RandomInputs(std::uint64_t seed) : random(seed) {}
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  }
};

// The pods of a place are among those of all.
inline void add(GroupSupply& sum, const GroupSupply& pods) {
  sum.waiting += pods.waiting;
  sum.unmatched += pods.unmatched;
  sum.claimed += pods.claimed;
  sum.broken += pods.broken;
  sum.unknown += pods.unknown;
  sum.unschedulable += pods.unschedulable;
  if (pods.unschedulable > 0) sum.unschedulable_since = pods.unschedulable_since;
  sum.failures.insert(sum.failures.end(), pods.failures.begin(), pods.failures.end());
  sum.registrations.insert(sum.registrations.end(), pods.registrations.begin(), pods.registrations.end());
}

}  // namespace glidepod::provisioner
