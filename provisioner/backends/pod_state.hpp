#pragma once

#include <set>
#include <string>

#include "provisioner/backends/pods.hpp"

namespace glidepod::provisioner {

// A pod of the API as the provisioner sees it. Fails where it has no name or its labels are no group's.
Result<Pod> read_pod(const Json& pod);

// "2026-11-21T04:00:00Z"; the epoch where it is no such text.
Time read_time(const Json& value);

// What nodes can take, each distinct size once, from a NodeList; GPUs without a limit where nodes do not list
// them. devices: the resources that GPUs may be, beside nvidia.com/gpu.
std::vector<Resources> read_nodes(const Json& list, bool list_gpus,
                                  const std::set<std::string>& devices = {});

// The tightest of the quotas that count our pods, hard and less what is used, from a ResourceQuotaList; what
// they do not limit is practically unlimited. None where there is no such quota. terminating: the pods have a
// deadline. classes: their priority classes; a quota that is about some of them only is not here: the API
// refuses by it.
struct Quota {
  Resources hard, left;
};
std::optional<Quota> read_quotas(const Json& list, bool terminating = false,
                                 const std::set<std::string>& classes = {""},
                                 const std::set<std::string>& devices = {});

}  // namespace glidepod::provisioner
