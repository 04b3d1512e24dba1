#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "provisioner/decide/drained.hpp"
#include "provisioner/decide/step.hpp"
#include "provisioner/demand/demand.hpp"
#include "provisioner/supply/supply.hpp"

namespace glidepod::provisioner {

// What the cluster can take; what is not known does not limit.
struct Capacity {
  std::vector<Resources> nodes;             // allocatable, each distinct size once
  std::optional<Resources> quota;           // hard
  std::optional<Resources> quota_left;      // hard less used
  std::map<Group, Resources> needs;         // of one pod of each group
  std::map<Group, std::string> unservable;  // groups that the backend cannot serve at all, and why
  std::map<std::string, Capacity> places;   // of each named place, where there are some: then all is there
};

// What a named place may have. Its image has the place's name in front (place.hpp).
struct PlacePolicy {
  std::string name, image;
  std::int64_t weight = 1;  // its share of the pods beside the others'; 0: only what they do not take
  std::int64_t max_pods_per_cluster = 20, max_submit_pods_per_cluster = 1000;
  std::int64_t max_pods = 0;  // that have not ended; 0: any number
};

// The rules that decide() follows.
struct Policy {
  std::string image;
  std::int64_t max_pods_per_cluster = 20;
  std::int64_t max_submit_pods_per_cluster = 1000;
  PolicySettings settings;
  // When ended pods are removed.
  Seconds finished_ttl{86400};
  std::int64_t sightings_before_removal = 0;  // not 0: this alone decides, not age and number
  std::int64_t removals_per_cycle = 100;
  std::int64_t least_fill = 0;      // percent of a free pod that a job must fill
  std::vector<PlacePolicy> places;  // by set_places(); none: there is one without a name
  DrainList drained;                // what an operator has taken out of use
};

// A stopped group and image: its pilots failed too often.
struct Breaker {
  bool open = false;
  Time opened, closed, next_canary;
  Seconds pause{0};
};

// A node on which pilots fail: none is sent there until then.
struct NodeMemory {
  Time since, until;
  Seconds pause{0};
  std::int64_t failed = 0;  // pilots, in a row
};

// Pods of a group that a place's API refuses (403, 422, a quota): none is asked for until then, and one after
// that until one is taken.
struct Refusal {
  Time until;
  Seconds pause{0};
  bool by_quota = false;
  std::string words;
};

// What decide() needs to know of its earlier decisions.
struct History {
  std::map<std::pair<Group, std::string>, Breaker> breakers;
  std::map<std::pair<Group, std::string>, Refusal> refusals;  // by group and place
  std::map<std::string, NodeMemory> nodes;                    // that are avoided, or were lately
  std::map<Group, Time> surplus_since;  // groups of which more pods wait than are wanted
  std::map<Group, Time> left_since;     // groups with jobs that are left to running pods
  std::uint64_t cycle = 0;
};

// Why one group gets the pods it gets.
struct Decision {
  enum class Verdict : std::uint8_t {
    submit,      // pods are made
    enough,      // enough pods wait
    limited,     // a curb, a cap or the quota holds it at none
    stopped,     // the breaker is open
    canary,      // the breaker is open, one pod tries
    unservable,  // no pod could run these jobs
    no_demand,   // pods, but no idle jobs
  };
  Group group;
  std::string image;
  Verdict verdict = Verdict::enough;
  GroupDemand demand;
  GroupSupply supply;
  std::int64_t counted = 0;  // idle jobs that count
  std::int64_t fit = 0;      // of these, such as fit into what running pods have left
  std::int64_t target = 0;   // waiting pods wanted
  std::int64_t keep = 0;     // waiting pods that are not too many: target as if no job had fitted anywhere
  std::int64_t submit = 0;
  std::vector<Step> steps;  // each rule that had a say
  // Of the named places: what each gets and has, and why not more where it was asked for it.
  struct InPlace {
    std::string place;
    std::int64_t submit = 0, waiting = 0, claimed = 0;
    bool stopped = false;  // its breaker is open
    std::optional<Step> why;
  };
  std::vector<InPlace> places;
  std::vector<std::string> without_room;  // where its pods have long had no node, while others may have room
  std::int64_t stuck = 0;                 // pods there that nobody waits for

  // The steps as one line.
  std::string reason() const;
};
std::string_view to_string(Decision::Verdict verdict);
// Lowers what is submitted to a limit (0 or less: none), and says so.
void lower(Decision& decision, std::int64_t limit, Rule rule);

// A pod to be removed; it has ended, or has no job for certain.
struct Removal {
  std::string pod;
  std::string reason;
};

struct Plan {
  std::optional<std::string> blind;  // why nothing is known, and so nothing decided
  std::vector<Decision> decisions;
  std::vector<Removal> removals;
  std::vector<Draining> drainings;
  std::vector<std::string> avoid;  // nodes that the new pods are kept from, as pilots fail there
  DrainList drained;               // and those that an operator has drained, beside groups and places
  std::map<std::string, std::string> unseen;  // named places that get no pods, as they do not answer: why
  // Why the pool's priorities had no say in the shares of owners, where they should have had.
  std::optional<std::string> equal_shares;
  History history;  // for the next time
  std::int64_t submissions() const;
  // Whether the breaker of the decision's group is open, for its image now or in one of the named places.
  bool breaker_open(const Decision& decision) const;
};

// What decide() looks at.
struct View {
  const Demand& demand;
  const Supply& supply;
  const Capacity& capacity;
  const Policy& policy;
  Time now;
};

// The decisions of one cycle, from nothing but its arguments.
Plan decide(const Demand& demand, const Supply& supply, const Capacity& capacity, const Policy& policy,
            Time now, History history);

// Why no pod of the group could ever run; nothing if one could.
std::optional<Step> why_unservable(const Group& group, const Capacity& capacity);

// PRP's law: how many waiting pods so many idle jobs ask for.
std::int64_t pressure(std::int64_t idle, std::int64_t max_pods_per_cluster);

}  // namespace glidepod::provisioner
