#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "provisioner/decide/decide.hpp"

namespace glidepod::provisioner {

// The rules of several named places: what one of them may have is its own, the law is that of all together.
void set_places(Policy& policy, std::vector<PlacePolicy> places);

// Where the pods of one cycle go, with several named places: each to the one that has least for its weight
// of those that can take it. A place takes what its own limits, quota, nodes and breaker leave, and nothing
// while it is not seen; what one does not take is the others'.
class Placing {
 public:
  // All of these must outlive it; breakers of the places are opened and closed in history.
  Placing(const Supply& supply, const Capacity& capacity, const Policy& policy, History& history, Time now);

  // Why each of the places could never run a pod of the group; empty where one could.
  std::vector<Step> why_unservable(const Group& group) const;
  // Whether all its pods have long had no node, wherever they are.
  bool homeless(const Group& group);
  // Places where they have, while others may have room; and how many pods that are, which nobody waits for.
  std::vector<std::string> without_room(const Group& group);
  std::int64_t stuck(const Group& group);
  // Gives one pod to a place. False: none takes it.
  bool take(const Group& group);
  // What take() has given: verdict, steps and numbers of the places; canaries are sent.
  void tell(Decision& decision);

 private:
  struct Place {
    const PlacePolicy* policy;
    const PlaceSupply* supply;
    const Capacity* capacity;
    std::int64_t live = 0;  // pods, of all groups, with those that were given
    std::optional<Resources> quota;
  };
  // What a place has for a group.
  struct Room {
    std::int64_t left = 0, given = 0;
    Step why;  // what it is that leaves no more
    bool said = false;
    bool stopped = false, homeless = false;  // its breaker is open; its pods have long had no node
  };
  std::vector<Room>& rooms_of(const Group& group);
  Room room_of(const Place& place, const Group& group);
  bool offers(const Place& place, Room& room, const Group& group) const;

  const Policy& policy_;
  History& history_;
  Time now_;
  std::vector<Place> places_;
  std::string unknown_;  // a place that may have any number of pods; empty: none
  std::map<Group, std::vector<Room>> rooms_;
};

}  // namespace glidepod::provisioner
