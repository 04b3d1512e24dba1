#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/kube/pulls.hpp"

namespace glidepod::provisioner {

// What a puller is for: pilots that agree in all of it share one.
struct PullKey {
  std::string node;
  std::string image;
  std::string policy;                // imagePullPolicy of the pilot's payload containers; empty: the default
  std::vector<std::string> secrets;  // imagePullSecrets of the pilot
  auto operator<=>(const PullKey&) const = default;
  // The puller's name in the cluster: the same for the same key, so that there is one.
  std::string pod_name(std::string_view app_name) const;
};

// A pilot that wants something.
struct PullingPilot {
  std::string name, uid;
  std::string node;
  std::string policy;
  std::vector<std::string> secrets;
  std::string pilot_image;  // where our own binary comes from
  std::vector<kube::WantedImage> wanted;
  std::vector<kube::PulledImage> told;  // what it has been told
  std::int64_t version = 0;             // resourceVersion
};

// A puller as its cluster shows it.
struct Puller {
  std::string name, uid;
  std::string node, image;
  kube::PulledImage::State state = kube::PulledImage::State::pulling;
  std::string reason, message;
  bool ending = false;  // being deleted
};

struct PullLimits {
  std::int64_t per_node = 8;
  std::int64_t in_all = 100;
  std::int64_t per_minute = 20;  // made for one node
};

struct PullPlan {
  struct New {
    PullKey key;
    std::string name, pilot_image;
  };
  std::vector<New> create;
  std::vector<std::string> remove;              // pullers by name
  std::map<std::string, std::string> annotate;  // pilots by name, and the text
};

// What to do, from nothing but its arguments: pods by name, and how many pullers were made for a node in the
// last minute.
PullPlan plan_pulls(const std::map<std::string, PullingPilot>& pilots,
                    const std::map<std::string, Puller>& pullers,
                    const std::map<std::string, std::int64_t>& made, const PullLimits& limits,
                    std::string_view app_name);

}  // namespace glidepod::provisioner
