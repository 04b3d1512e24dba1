#pragma once

#include <cstdint>
#include <string_view>

namespace glidepod::kube {

// What a container that does not start waits for, by the reason in its status.
enum class WaitReason : std::uint8_t {
  other,     // nothing has failed
  pull,      // its image cannot be pulled, or not yet
  never,     // its image has a wrong name, or may not be pulled or run here
  create,    // the runtime cannot make or start the container
  config,    // something that the container refers to does not exist
  back_off,  // the container has ended, and is started again later
};
WaitReason wait_reason_of(std::string_view reason);

// Whether the reason of a container's end says that the runtime could not start it.
bool never_started(std::string_view terminated_reason);

}  // namespace glidepod::kube
