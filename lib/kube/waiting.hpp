#pragma once

#include <cstdint>
#include <string_view>

namespace glidepod::kube {

// What a container waits for that does not start, by the reason in its status.
enum class Waiting : std::uint8_t {
  other,     // nothing that failed
  pull,      // its image cannot be had, or not yet
  never,     // its image has no good name, or may not be pulled or run here
  create,    // the runtime cannot make or start it
  config,    // something that it refers to is not there
  back_off,  // it has ended, and is started again later
};
Waiting waiting_of(std::string_view reason);

// Whether the reason of a container's end says that the runtime could not start it.
bool never_started(std::string_view terminated_reason);

}  // namespace glidepod::kube
