#pragma once

#include <deque>
#include <queue>
#include <set>

#include "provisioner/simulate/cluster.hpp"
#include "provisioner/supply/sights.hpp"

namespace glidepod::provisioner {

// The cluster, the pool and the queue of a simulation, moved on from event to event.
class World {
 public:
  explicit World(const Scenario& scenario);

  void advance(Seconds to);
  // In a place, by its number; 0 is the only one.
  void create(const Group& group, std::int64_t count, std::size_t place = 0);
  // Pods are kept from these nodes from now on.
  void avoid(std::vector<std::string> nodes);
  // To be called for pods of the supply only.
  void remove(const std::string& name);

  Demand demand() const;
  Supply supply(const PolicySettings& rules);
  // With named places: as tracker and sights have it from the pods that can be seen and the ads of all.
  Supply supply_of_places();
  Sample sample(const Demand& demand, const Supply& supply) const;

 private:
  struct Pod {
    std::size_t group, node = Cluster::k_nowhere;
    Cluster::Wish wish;
    PodState state = PodState::unschedulable;
    std::uint32_t version = 0;  // an event for an older one is void
    Seconds born{0}, since{0};
    bool had_job = false, broken = false, overdue = false;
    bool gone = false;       // it has been removed
    std::size_t stream = 0;  // of its job
  };
  enum class Kind : std::uint8_t {
    scheduled,
    pulled,
    registered,
    crashes,
    job_done,
    idle_too_long,
    gives_up,
    node_down,
    node_back
  };
  struct Event {
    Seconds at;
    std::uint64_t order;  // ties in the order of their making
    std::size_t of;       // a pod, or a node
    std::uint32_t version;
    Kind kind;
    bool operator>(const Event& other) const {
      return std::pair(at, order) > std::pair(other.at, other.order);
    }
  };
  struct Outcomes {
    std::deque<Outcome> failures, registrations;
    std::deque<Time> wasted, used;
    std::map<std::string, std::int64_t> at_work;  // pods in the pool by node
  };
  enum class End : std::uint8_t { own, taken };

  bool is_void(const Event& event) const;
  void at(Seconds when, std::size_t pod, Kind kind);
  void handle(const Event& event);
  void move(std::size_t index, PodState state, Seconds now);
  void end(std::size_t index, Seconds now, End how = End::own);
  void goes_to(std::size_t index, std::size_t node, Seconds now);
  void fill(std::size_t node, Seconds now);
  void fail(std::size_t index, Seconds now);
  void pulled(std::size_t index, Seconds now);
  void wait_for_job(std::size_t index, Seconds now);
  void start_job(std::size_t index, std::size_t stream, Seconds now);
  void arrive(Seconds now);
  void negotiate(Seconds now);
  std::size_t next_stream(std::size_t group) const;
  Outcome outcome(std::size_t index, Seconds now) const;

  const Scenario& scenario_;
  const Model& model_;
  Random random_;
  Seconds now_{0}, negotiated_{0};
  std::vector<Group> groups_;
  std::vector<std::vector<std::size_t>> streams_of_;  // a group
  std::vector<std::size_t> group_of_;                 // a stream
  std::vector<std::int64_t> arrived_, idle_;          // of a stream
  std::vector<bool> unmet_, uncounted_;               // no pilot takes its jobs; the provisioner knows that
  Cluster cluster_;
  std::deque<std::vector<std::string>> avoids_;  // all there have been, the present one last
  std::vector<GroupSupply> supplies_;
  std::map<std::size_t, std::int64_t> overdue_;
  std::vector<Outcomes> outcomes_;
  std::vector<std::set<std::size_t>> unmatched_;  // pods of a group
  std::set<std::size_t> jobless_;
  std::vector<bool> unplaceable_;  // of a group
  std::vector<Pod> pods_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::map<std::string, std::int64_t> claimed_by_owner_;
  std::uint64_t order_ = 0;
  std::int64_t submitted_ = 0, wasted_ = 0, done_ = 0;
  double used_hours_ = 0, idle_hours_ = 0;
  Sights sights_;  // with named places
  Tracker tracker_;
};

}  // namespace glidepod::provisioner
