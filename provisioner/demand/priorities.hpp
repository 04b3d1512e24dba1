#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "lib/condor/classad.hpp"

namespace glidepod::provisioner {

// What the pool's negotiator says of owners, as its accounting ads in the collector have it.
struct Priorities {
  std::optional<std::string> unknown;  // why nothing is known, where it was asked for

  // Effective priorities (usage times factor), by owner; half of it is twice the share. Who has never
  // had a slot has no ad, and what a newcomer has.
  std::map<std::string, double> of;
  double newcomer = 1;
  double of_owner(const std::string& owner) const;

  // Accounting groups with a quota of a fixed number of cores (slot weight) that take no surplus, and what
  // their running jobs leave of it. Owners who have only been seen in such a group.
  std::map<std::string, double> quota_left;
  std::map<std::string, std::string> group_of;
};

// Reads priorities and quotas, an ad after the other.
class PrioritiesReader {
 public:
  // Ads of another kind change nothing.
  void read(const condor::Ad& ad);
  Priorities result() const;

 private:
  void read_group(const condor::Ad& ad, const std::string& name);

  Priorities result_;
  std::map<double, int> factors_;  // how many owners have each
};

}  // namespace glidepod::provisioner
