#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/kube/pod.hpp"
#include "pilot-agent/core/announced.hpp"
#include "pilot-agent/core/containers.hpp"
#include "pilot-agent/core/image.hpp"
#include "pilot-agent/core/likely.hpp"
#include "pilot-agent/core/references.hpp"
#include "pilot-agent/core/state.hpp"
#include "pilot-agent/core/types.hpp"

namespace glidepod::agent {

// Which image an idle container is to have, and which idle container a job takes: by what this pilot ran
// lately, by what waits in the queues (likely.hpp), and by which jobs are announced (announced.hpp).
class Spares {
 public:
  Spares(const Policy& policy, const References& references, Containers& containers)
      : announced(policy, references, containers),
        policy_(policy),
        references_(references),
        containers_(containers) {}

  Announced announced;

  void announce(Request job, Time now);

  void ran(const Image& image, const std::string& owner) { lately_.ran(image, owner); }
  // The pod's annotation says which images waiting jobs want.
  void told(const kube::Pod& pod);
  // A spare container could not get this image of a job's: none tries it for a while.
  void failed(const Image& image, Time now) { not_before_[image.name()] = now + policy_.renewal_pause; }

  // Whether a spare container may try this image. None goes home, where it came from.
  bool may_try(const Image& image) const { return !image.is_home() && !not_before_.contains(image.name()); }

  // The idle container that the next jobs will miss least; without spares, the one that was used longest ago.
  // One that an announced job awaits is the last choice. Null: none is idle.
  Container* least_wanted_idle(Time now);
  // The container to make ready while no request waits, and its image. It leaves enough containers as they
  // are for the jobs that can come. None soon after a job was announced: so will the next one be, and a
  // renewal between them is a switch that it has to wait for.
  struct Next {
    Container* container = nullptr;
    Image image;
  };
  std::optional<Next> next(Time now);
  // The same for an announced job, also while requests wait: it will be one of them. may_have: whether its
  // image may be had now.
  std::optional<Next> next_announced(Time now, const std::function<bool(const Image&)>& may_have);

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
  std::optional<Time> calm_at_;
};

}  // namespace glidepod::agent
