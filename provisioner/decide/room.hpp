#pragma once

#include <map>
#include <string>

#include "provisioner/decide/decide.hpp"

namespace glidepod::provisioner {

// Of a group, the jobs that are left to pods which run already.
struct LeftJobs {
  std::int64_t jobs = 0;
  bool overdue = false;  // they have been for too long: none of them is any more
  Step step;             // what to say of it
};

// Finds room for the idle jobs that count in what running pods have left, each piece of it once: first in
// pods with a job of their own group, then in such pods of groups that differ in size alone, and in free ones
// whose group has no jobs. A group is left to them for free_capacity_limit (since: when that began), then no
// more until fresh_pods() says that it has got others.
std::map<Group, LeftJobs> leave_to_pods(const std::map<Group, std::int64_t>& counted, const Demand& demand,
                                        const Supply& supply, const Policy& policy, Time now,
                                        std::map<Group, Time>& since);

// An overdue group one of whose pods is made now, or waits, is left to running ones again.
void fresh_pods(const Decision& decision, const std::map<Group, LeftJobs>& left,
                std::map<Group, Time>& since);

}  // namespace glidepod::provisioner
