#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "provisioner/demand/demand.hpp"

namespace glidepod::provisioner {

// Payload containers of new pods that start on images that jobs want, in place of the pilot's own.

// Whether a name is of one of these registries or paths ("docker.io/library"), as
// manifests/policy/registries.yaml has it; none are all.
bool is_from(std::string_view image, const List& places);

// The images for so many containers, each by its share of the group's idle jobs: those whose image may not be
// taken, or is not known, have a share too, of containers that stay as they are (empty). Another name,
// another choice; over many pods all come by their share.
using MayBe = std::function<bool(const std::string& image)>;
std::vector<std::string> births(const GroupDemand& demand, const MayBe& may_be, std::size_t containers,
                                std::string_view name);

// Gives the pod's payload containers these images, but for the first: it starts before anything is pulled,
// its switch proves the pilot, and jobs of other images find it. False where that changes nothing.
bool give_births(nlohmann::json& pod, const GroupDemand& demand, const MayBe& may_be);

}  // namespace glidepod::provisioner
