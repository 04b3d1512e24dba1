#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/kube/pod.hpp"
#include "pilot-agent/core/ending.hpp"
#include "pilot-agent/core/state.hpp"
#include "pilot-agent/core/types.hpp"

namespace glidepod::agent {

// Jobs whose glue is gone. The pod's status will tell why: it has the job's container by its id, and as soon
// as the kubelet has noticed its end, it shows it as the last terminated one.
class LostJobs {
 public:
  struct Lost {
    std::string container, instance;
    std::int64_t restarts = 0;  // the container's restartCount, as the status last told it
    Request request;
    EndFacts end;
  };
  // The job of this container, whose glue is gone.
  void add(const Container& container, const Job& job);
  bool has(ClientId client) const;
  void drop(ClientId client);

  // Those of which the status tells how their container ended; those of which it is not expected to tell any
  // more; and all. Each is returned once.
  std::vector<Lost> take_told(const kube::Pod& pod);
  std::vector<Lost> take_due(Time now);
  std::vector<Lost> take_all() { return std::exchange(lost_, {}); }

  bool empty() const { return lost_.empty(); }
  std::optional<Time> next_deadline() const;

 private:
  friend struct Inside;  // as in core.hpp
  std::vector<Lost> lost_;
};

}  // namespace glidepod::agent
