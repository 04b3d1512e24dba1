#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "provisioner/demand/group.hpp"
#include "provisioner/supply/slot.hpp"

namespace glidepod::provisioner {

// Where a pod is in its life, as its cluster and the pool tell it together.
enum class PodState : std::uint8_t {
  gated,          // its scheduling is held back by others, as Kueue's does
  unschedulable,  // waits for room
  pulling,        // has a node, its images are fetched or its containers made
  pull_error,     // the image cannot be had
  starting,       // has its images, does not run yet
  unregistered,   // runs, but the pool has no ad of it
  unmatched,      // in the pool, without a job
  claimed,        // in the pool, with a job
  unknown,        // its node does not answer
  succeeded,
  failed,
};
std::string_view to_string(PodState state);

// Whose doing it is that a pod ended or will.
enum class PodEnd : std::uint8_t {
  own,     // its pilot's, or that of the image
  taken,   // evicted, preempted, deleted, shut down or lost with its node: says nothing of it
  refused  // its node's, which would not or could not run it: says nothing of the image
};

// One pod as its cluster shows it; the pool's ads are not in it yet.
struct Pod {
  SharedText name;
  Group group;
  SharedText image;
  PodState state = PodState::unschedulable;  // of a running pod: unregistered
  Time since;                                // when it came into this state, or was made
  bool jobless = false;  // for certain: its pilot has not run yet, or crashes again and again and is down
  PodEnd end = PodEnd::own;
  bool outdated = false;    // new pods of its group are made otherwise
  SharedText node = {};     // where it is to run; empty: it waits for one
  SharedText made_as;       // how it was made: differs where another template or other settings made it
  bool leaving = false;     // somebody has asked for its end
  SharedText message;       // what the scheduler or the kubelet says of its waiting
  std::int64_t spares = 0;  // payload containers that its pilot makes ready while nobody waits
  SharedText likely = {};   // the annotation by which it was told for which images
  // Jobs' images that it was made with, while its node may be at work on one of them and so on nothing else
  // of it.
  std::vector<std::string> awaits = {};
  std::vector<std::string> avoids = {};  // host names of nodes that it is kept from because pilots fail there
  Time near_end{};                       // from then on it ends too soon for a long job; the epoch: never
  SharedText drained = {};               // why an operator wants its end; empty: nobody does
  bool node_comes = false;               // it waits for a node, which an autoscaler makes
  bool told_drained = false;             // its pilot is told, and takes no more jobs
};

// That a pilot joined or failed: when it was noticed, and where. Pods of some backends have no node.
struct Outcome {
  Outcome(Time when) : at(when) {}  // NOLINT(google-explicit-constructor): of nothing but the time
  Outcome(Time when, std::string which, std::string where)
      : at(when), pod(std::move(which)), node(std::move(where)) {}
  Time at;
  std::string pod, node;
};

// Pods of one group by state, and how its pilots fared lately.
struct GroupSupply {
  std::map<PodState, std::int64_t> states;
  std::int64_t waiting = 0;  // pending, or running without an ad, and not for too long
  std::int64_t unmatched = 0;
  std::int64_t claimed = 0;
  std::int64_t broken = 0;  // cannot pull, or took too long to start or to register
  std::int64_t unknown = 0;
  // Of those that wait, such as no node comes for, gated ones among them; the oldest of them was made then:
  std::int64_t unschedulable = 0;
  Time unschedulable_since;
  // Of the present image only, each within its window:
  std::vector<Outcome> failures;       // became broken or ended without having registered
  std::vector<Outcome> registrations;  // were first seen in the pool
  std::vector<Outcome> crashes;        // of the wasted: those that failed
  std::vector<Outcome> refusals;       // not run by their node, or no job came by a container in them
  std::int64_t wasted = 0;             // ended by themselves, without a job
  std::int64_t used = 0;               // ended with one
  std::set<std::string> at_work;       // nodes with a pilot in the pool that takes jobs

  std::int64_t unclaimed() const { return waiting + unmatched; }
  // Pods that have not ended.
  std::int64_t live() const { return waiting + unmatched + claimed + broken + unknown; }
};

// The pods of one of several named places, and whether it could be seen.
struct PlaceSupply {
  std::map<Group, GroupSupply> groups;
  std::string unseen;     // why it does not answer; empty: it does, else these are the pods of the last sight
  Seconds unseen_for{0};  // since that, or since somebody first looked
  bool unknown = false;   // it was never seen, and may have any number of pods
};

// A pod that ended and can be removed.
struct EndedPod {
  std::string name;
  bool failed = false;
  Time ended;
  std::int64_t sightings = 0;  // cycles that saw it ended
};

// A pod that has no job for certain: it can be taken back.
struct JoblessPod {
  std::string name;
  Group group;
  PodState state = PodState::unschedulable;
  Time since;
  bool outdated = false;
  std::string message;
  bool node_comes = false;
  std::string drained = {};

  // No node has room for it so far, none is being made, and it is not to go for another reason.
  bool waits_for_node() const;
};

// What a pod in the pool has left for jobs that it takes now.
struct Room {
  Group group;  // of the pod
  Resources left;
  bool has_job = false;
};

// The pods there are, as of one moment.
struct Supply {
  std::map<Group, GroupSupply> groups;
  std::map<std::string, std::int64_t> claimed_by_owner;  // pods with a job of this owner
  std::vector<EndedPod> ended;
  std::vector<JoblessPod> jobless;
  std::vector<Room> rooms;
  std::map<std::string, PlaceSupply>
      places;                        // the same pods by place; none where there is one without a name
  std::optional<std::string> blind;  // why the pods or their ads could not be seen
  std::vector<std::string> problems;
};

// How the pilots of a group fared lately.
struct Fates {
  struct Event {
    Outcome outcome;
    std::string image;
  };
  std::vector<Event> failures, registrations, crashes, refusals;  // as GroupSupply has them
  std::vector<Time> wasted, used;
};

// What is remembered of pods from cycle to cycle.
class Tracker {
 public:
  Tracker() = default;
  // Goes on from what another one has learnt. Who joined the pool when, the pods themselves show.
  explicit Tracker(std::map<Group, Fates> fates) : outcomes_(std::move(fates)) {}

  // Puts pods and slots together and learns from them. image is what new pods get; pods of another one do not
  // count as failures or registrations.
  Supply observe(const std::vector<Pod>& pods, const std::vector<Slot>& slots, const PolicySettings& policy,
                 std::string_view image, Time now);
  // The same with several named places, each with an image of its own (place.hpp).
  Supply observe(const std::vector<Pod>& pods, const std::vector<Slot>& slots, const PolicySettings& policy,
                 const std::set<std::string, std::less<>>& images, std::map<std::string, PlaceSupply> places,
                 Time now);
  // A pod was made: should it be seen only when it has ended, that still counts as a failure.
  void created(const std::string& pod, const Group& group, std::string_view image);
  const std::map<Group, Fates>& fates() const { return outcomes_; }

 private:
  struct Memory {
    Group group;
    SharedText image;
    SharedText node = {};
    bool known = false, registered = false, had_job = false, broken = false, settled = false;
    bool troubled = false;  // it has said that it takes no more jobs
    bool older = false;     // it joined before the first look: it may have had a job
    std::int64_t sightings_ended = 0;
    std::uint64_t seen = 0;
  };
  struct InPool;
  using Sums = std::vector<GroupSupply*>;  // of the pod's group: in all, and in its place
  static std::map<std::string_view, InPool> by_pod(const std::vector<Slot>& slots, Time now);
  void take(const Pod& pod, const InPool* ads, const PolicySettings& policy, Supply& supply, Time now);
  Memory& remembered(const Pod& pod, bool ended);
  PodState joined(const Pod& pod, Memory& memory, const InPool& ads, Supply& supply, const Sums& sums,
                  Time now);
  static bool jobless(const Pod& pod, bool broken, Supply& supply, const Sums& sums);
  using List = std::vector<Fates::Event> Fates::*;
  void note(List list, const std::string& pod, const Memory& memory, Time now);
  void settle(const std::string& pod, Memory& memory, PodEnd end, bool failed, Time now);
  void add_outcomes(Supply& supply, const std::set<std::string, std::less<>>& images) const;
  void forget_old(const PolicySettings& policy, Time now);

  std::map<std::string, Memory, std::less<>> pods_;
  std::map<Group, Fates> outcomes_;
  std::uint64_t cycle_ = 0;
};

}  // namespace glidepod::provisioner
