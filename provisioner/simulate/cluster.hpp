#pragma once

#include <deque>
#include <set>
#include <string>
#include <vector>

#include "provisioner/simulate/random.hpp"
#include "provisioner/simulate/simulate.hpp"

namespace glidepod::provisioner {

// The nodes of the simulated cluster, the pods on them by number, and those that wait for one. Without any
// [nodes NAME] it is one node without a name and of no size, which holds model.room pods; with named places
// there is one in each, with that place's room.
class Cluster {
 public:
  static constexpr std::size_t k_nowhere = static_cast<std::size_t>(-1);

  // A time in which a node is gone, or breaks the pilots that start there.
  struct Trouble {
    Seconds from, until;
    std::size_t node;
    bool down;
  };

  Cluster(const Scenario& scenario, const std::vector<Group>& groups, Random& random);

  const std::vector<Trouble>& troubles() const { return troubles_; }
  const std::string& name(std::size_t node) const { return nodes_[node].name; }
  // Whether a pilot that starts there now breaks.
  bool breaks(std::size_t node, Seconds now) const;

  // Of a pod that waits: its place, by number (0: the only one), and the names of nodes that it is kept from,
  // in order.
  struct Wish {
    std::size_t place;
    const std::vector<std::string>* avoids;
  };
  // The node that has most left of those that may hold the pod; k_nowhere: it waits for one.
  std::size_t place(std::size_t pod, std::size_t group, const Wish& wish);
  // Pods that wait and that the node holds now, the oldest first.
  std::vector<std::size_t> fill(std::size_t node);
  // The pod waits no more.
  void withdraw(std::size_t pod, std::size_t group);
  // The pod has left its node.
  void leave(std::size_t pod, std::size_t group, std::size_t node);
  // Its pods, and it takes none until it is back.
  std::set<std::size_t> go_down(std::size_t node);
  void come_back(std::size_t node) { nodes_[node].down = false; }

 private:
  struct Node {
    std::string name;
    std::int64_t cpus, memory_mb, pods;  // left
    std::size_t place = 0;
    bool down = false;
    std::set<std::size_t> on_it = {};
  };
  struct Pending {
    std::size_t pod;
    Wish wish;
  };
  static bool holds(const Node& node, const Group& group);
  static bool suits(const Node& node, const Wish& wish);
  void put(std::size_t pod, std::size_t group, std::size_t node);
  void add_troubles(const NodeKind& kind, std::size_t node, Seconds length, Random& random);

  const std::vector<Group>& groups_;
  std::vector<Node> nodes_;
  std::vector<Trouble> troubles_;             // by their beginning
  std::vector<std::deque<Pending>> pending_;  // by group
};

}  // namespace glidepod::provisioner
