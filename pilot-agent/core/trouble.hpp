#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/kube/failure.hpp"
#include "lib/kube/pod.hpp"
#include "lib/wire/messages.hpp"

namespace glidepod::agent {

// What a container's status says of why it does not start.
struct Trouble {
  enum class Kind : std::uint8_t {
    none,     // nothing is wrong, or nothing is known
    passing,  // may yet go away, as with a registry that does not answer
    user,     // the image is at fault and will stay so
  };
  Kind kind = Kind::none;
  std::string message;    // the kubelet's or the registry's words, one line
  bool back_off = false;  // they only say that the kubelet waits before it tries again
};
// Whether the pod names credentials for registries: if it does, a refusal that says no more may be of those.
enum class Credentials : std::uint8_t { none, some };
Trouble trouble_of(const kube::ContainerStatus& status, Credentials credentials = Credentials::none);

// Whose fault it is if an image could still not be pulled after all patience.
wire::Fault fault_after_patience(std::string_view message);

// Whose fault it is that the API did not take a new image: a refusal by the rules for images is the user's.
wire::Fault fault_of(const kube::Failure& failure);

}  // namespace glidepod::agent
