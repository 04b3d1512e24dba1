#include "provisioner/decide/room.hpp"

#include <algorithm>
#include <utility>

namespace glidepod::provisioner {

namespace {

// Whether pods of the one group take jobs of the other, if there is room. What START does not refuse but the
// provisioner cannot be sure of (other labels, GPUs or volumes) is no.
bool takes(const Group& pods, const Group& jobs) {
  return pods.labels == jobs.labels && pods.disk_volumes == jobs.disk_volumes &&
         pods.gpu_types == jobs.gpu_types && (pods.gpus > 0) == (jobs.gpus > 0);
}

Resources need_of(const Group& group, const GroupDemand& demand) {
  return demand.largest.value_or(of_job(group.cpus, group.memory_mb, group.disk_kb, group.gpus));
}

// Jobs still without room, and what each needs.
struct Seeker {
  const Group* group;
  Resources need;
  std::int64_t jobs, found = 0;

  void take(Resources& left) {
    const auto fit = left.holds(need, jobs - found);
    left = left.minus(need, fit);
    found += fit;
  }
};

}  // namespace

std::map<Group, LeftJobs> leave_to_pods(const std::map<Group, std::int64_t>& counted, const Demand& demand,
                                        const Supply& supply, const Policy& policy, Time now,
                                        std::map<Group, Time>& since) {
  const auto before = std::exchange(since, {});
  std::map<Group, LeftJobs> result;
  if (!policy.settings.count_free_capacity || supply.rooms.empty()) return result;
  std::vector<Seeker> seekers;
  for (const auto& [group, jobs] : counted)
    if (jobs > 0) seekers.push_back({&group, need_of(group, demand.groups.at(group)), jobs});
  // The largest first: what the small ones leave would not do for them.
  std::ranges::reverse(seekers);

  auto rooms = supply.rooms;
  for (const bool own : {true, false})
    for (auto& seeker : seekers)
      for (auto& room : rooms) {
        if (seeker.found == seeker.jobs) break;
        if ((room.group == *seeker.group) != own || !takes(room.group, *seeker.group)) continue;
        // A free pod waits for jobs of its own group, which the law has counted, and least_fill keeps it from
        // small ones.
        const auto jobs = counted.find(room.group);
        const bool wanted = jobs != counted.end() && jobs->second > 0;
        if (!room.has_job && (wanted || policy.least_fill > 0)) continue;
        seeker.take(room.left);
      }

  for (const auto& seeker : seekers) {
    if (seeker.found == 0) continue;
    const auto known = before.find(*seeker.group);
    const auto began = since[*seeker.group] = known == before.end() ? now : known->second;
    const auto age = now - began;
    auto& left = result[*seeker.group];
    left.overdue = age >= policy.settings.free_capacity_limit;
    if (!left.overdue) left.jobs = seeker.found;
    left.step = left.overdue
                    ? fmt::format(
                          "{} of {} idle jobs seem to fit into running pods, but wait for {} s: "
                          "all count",
                          seeker.found, seeker.jobs, age.count())
                    : fmt::format("{} of {} idle jobs fit into running pods", seeker.found, seeker.jobs);
  }
  return result;
}

void fresh_pods(const Decision& decision, const std::map<Group, LeftJobs>& left,
                std::map<Group, Time>& since) {
  const auto found = left.find(decision.group);
  const bool overdue = found != left.end() && found->second.overdue;
  if (overdue && decision.submit + decision.supply.unclaimed() > 0) since.erase(decision.group);
}

}  // namespace glidepod::provisioner
