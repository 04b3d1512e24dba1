#include "provisioner/decide/room.hpp"

#include <algorithm>
#include <deque>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "lib/base/found.hpp"

namespace glidepod::provisioner {

namespace {

// Pods take jobs of groups of the same kind, if there is room. What START does not refuse but the provisioner
// cannot be sure of (other labels, GPUs or volumes) is another kind.
auto kind_of(const Group& group) {
  return std::tuple(group.labels.view(), group.disk_volumes.view(), group.gpu_types.view(), group.gpus > 0);
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

// What is left of a room by and by.
struct OpenRoom {
  const Group* group;
  Resources left;
};

// Some of the rooms, in their order. It knows for each few what the largest of them has left at most: of
// 20,000 rooms most are too small for a job, and each of 5,000 groups asks.
class RoomList {
 public:
  void add(OpenRoom& room) {
    if (rooms_.size() % k_few == 0) most_.emplace_back();
    rooms_.push_back(&room);
    most_.back() = most_.back().widened_to(room.left);
  }
  void take(Seeker& seeker) {
    for (std::size_t few = 0; few < most_.size() && seeker.found < seeker.jobs; ++few) {
      if (most_[few].holds(seeker.need, 1) == 0) continue;
      Resources most{.pods = 0};
      for (auto at = few * k_few; at < std::min(few * k_few + k_few, rooms_.size()); ++at) {
        auto& room = *rooms_[at];
        seeker.take(room.left);
        most = most.widened_to(room.left);
      }
      most_[few] = most;
    }
  }

 private:
  static constexpr std::size_t k_few = 64;
  std::vector<OpenRoom*> rooms_;
  std::vector<Resources> most_;
};

}  // namespace

std::map<Group, LeftJobs> leave_to_pods(const std::map<Group, std::int64_t>& counted, const Demand& demand,
                                        const Supply& supply, const Policy& policy, Time now,
                                        std::map<Group, Time>& since) {
  const auto before = std::exchange(since, {});
  std::map<Group, LeftJobs> result;
  if (!policy.settings.count_free_capacity) return result;
  std::deque<Seeker> seekers;
  for (const auto& [group, jobs] : counted)
    seekers.push_back({&group, need_of(group, demand.groups.at(group)), jobs});
  // The largest first: what the small ones leave would not do for them.
  std::ranges::reverse(seekers);

  std::deque<OpenRoom> rooms;  // which stay where they are
  std::map<Group, RoomList> of_group;
  std::map<decltype(kind_of(Group())), RoomList> of_kind;
  for (const auto& room : supply.rooms) {
    // A free pod waits for jobs of its own group, which the law has counted, and least_fill keeps it from
    // small ones.
    const auto* jobs = found_in(counted, room.group);
    const bool wanted = jobs && *jobs > 0;
    if (!room.has_job && (wanted || policy.least_fill > 0)) continue;
    auto& place = rooms.emplace_back(OpenRoom{&room.group, room.left});
    of_group[room.group].add(place);
    of_kind[kind_of(room.group)].add(place);
  }
  for (const bool own : {true, false})
    for (auto& seeker : seekers) {
      if (own)
        of_group[*seeker.group].take(seeker);
      else
        of_kind[kind_of(*seeker.group)].take(seeker);
    }

  for (const auto& seeker : seekers) {
    if (seeker.found == 0) continue;
    const auto* known = found_in(before, *seeker.group);
    const auto began = since[*seeker.group] = known ? *known : now;
    const auto age = now - began;
    auto& left = result[*seeker.group];
    left.overdue = age >= policy.settings.free_capacity_limit;
    if (!left.overdue) left.jobs = seeker.found;
    left.step = left.overdue ? Step{Rule::free_room_overdue, {seeker.found, seeker.jobs, age.count()}}
                             : Step{Rule::free_room, {seeker.found, seeker.jobs}};
  }
  return result;
}

void fresh_pods(const Decision& decision, const std::map<Group, LeftJobs>& left,
                std::map<Group, Time>& since) {
  const auto* jobs = found_in(left, decision.group);
  if (jobs && jobs->overdue && decision.submit + decision.supply.unclaimed() > 0) since.erase(decision.group);
}

}  // namespace glidepod::provisioner
