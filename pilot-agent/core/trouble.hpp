#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/kube/failure.hpp"
#include "lib/kube/pod.hpp"
#include "lib/wire/messages.hpp"
#include "pilot-agent/core/types.hpp"

namespace glidepod::agent {

// What a container's status says of why it does not start.
struct Trouble {
  enum class Kind : std::uint8_t {
    none,     // nothing is wrong, or nothing is known
    busy,     // the kubelet's own limits: waited for as long as the request may
    passing,  // may yet go away, as with a registry that does not answer
    unknown,  // words that nobody knows: of the image, or of the node
    user,     // the image is at fault and will stay so
  };
  Kind kind = Kind::none;
  std::string message;    // the kubelet's or the registry's words, one line
  bool back_off = false;  // they only say that the kubelet waits before it tries again
  bool counts = false;    // where it fails on other nodes too, the image is at fault
};
// How long it is waited for before the pilot tries its own image.
std::chrono::seconds patience_with(const Trouble& trouble, const Policy& policy);

// Whether the pod names credentials for registries: if it does, a refusal that says no more may be of those.
enum class Credentials : std::uint8_t { none, some };
Trouble trouble_of(const kube::ContainerStatus& status, Credentials credentials = Credentials::none);

// Whose fault it is that the API did not take a new image: a refusal by the rules for images is the user's.
wire::Fault fault_of(const kube::Failure& failure);

}  // namespace glidepod::agent
