#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/kube/failure.hpp"
#include "lib/kube/pod.hpp"
#include "lib/wire/messages.hpp"
#include "pilot-agent/core/types.hpp"

namespace glidepod::agent {

// Why a container does not start, by its status.
struct Trouble {
  enum class Kind : std::uint8_t {
    none,     // nothing is wrong, or nothing is known
    busy,     // the kubelet's own limits: the request waits as long as it may
    passing,  // the trouble may go away, as with a registry that does not answer
    unknown,  // words that are in no table: the image or the node may be at fault
    user,     // the image is at fault and will stay so
  };
  Kind kind = Kind::none;
  std::string message;    // the kubelet's or the registry's words, one line
  bool back_off = false;  // the words only say that the kubelet waits before its next try
  bool counts = false;    // if the image fails on other nodes too, the image is at fault
};
// How long the agent waits for this trouble to pass before it tries the pilot's own image.
std::chrono::seconds patience_with(const Trouble& trouble, const Policy& policy);

// Whether the pod names credentials for registries. If it does, a bare refusal may be about these
// credentials.
enum class Credentials : std::uint8_t { none, some };
Trouble trouble_of(const kube::ContainerStatus& status, Credentials credentials = Credentials::none);

// Whose fault it is that the API did not take a new image. A refusal by a rule about images is the user's.
wire::Fault fault_of(const kube::Failure& failure);

}  // namespace glidepod::agent
