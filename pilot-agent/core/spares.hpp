#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/kube/pod.hpp"
#include "pilot-agent/core/containers.hpp"
#include "pilot-agent/core/image.hpp"
#include "pilot-agent/core/likely.hpp"
#include "pilot-agent/core/references.hpp"
#include "pilot-agent/core/state.hpp"
#include "pilot-agent/core/types.hpp"

namespace glidepod::agent {

// Which image an idle container is to have, and which idle container a job takes: by what this pilot ran
// lately, and by what waits in the queues (likely.hpp).
class Spares {
 public:
  Spares(const Policy& policy, const References& references, Containers& containers)
      : policy_(policy), references_(references), containers_(containers) {}

  void ran(const Image& image, const std::string& owner) { lately_.ran(image, owner); }
  // The pod's annotation says which images waiting jobs want.
  void told(const kube::Pod& pod);
  // A spare container could not get this image of a job's: none tries it for a while.
  void failed(const Image& image, Time now) { not_before_[image.name()] = now + policy_.renewal_pause; }

  // The idle container that the next jobs will miss least; without spares, the one that was used longest ago.
  // Null: none is idle.
  Container* least_wanted_idle(Time now);
  // The container to make ready while no request waits, and its image. It leaves enough containers as they
  // are for the jobs that can come.
  struct Next {
    Container* container = nullptr;
    Image image;
  };
  std::optional<Next> next(Time now);

  void on_time(Time now);
  std::optional<Time> next_deadline() const;

 private:
  std::vector<Lately::One> weights() const { return with_queued(lately_.all(), queued_); }

  const Policy& policy_;
  const References& references_;
  Containers& containers_;
  Lately lately_;
  std::vector<QueuedImage> queued_;
  std::map<std::string, Time, std::less<>> not_before_;  // by the names of jobs' images
};

}  // namespace glidepod::agent
