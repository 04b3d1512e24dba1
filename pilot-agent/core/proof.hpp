#pragma once

#include <string>
#include <string_view>

#include "lib/kube/pod.hpp"
#include "pilot-agent/core/state.hpp"

// What proves which image a container runs. Pure functions; every one of them is a rule that protects a job
// from a wrong image, and tests/simulate drops each in turn to see that it is missed.
namespace glidepod::agent {

// The pilot's own image, as the pod's status names it in the pilot's own container.
struct Home {
  std::string image;       // as in the pod's spec
  std::string image_id;    // as in its status
  std::string repository;  // of image_id; empty: it names none
  std::string digest;
};

// Whether a status is of that very container: it has this id. A status that is late, or of a
// container that never came to say Hello, has another.
bool is_of(const kube::ContainerStatus& status, std::string_view container_id);

// Whether the container of a status runs the pilot's own image. Both imageIDs are of one node.
bool shows_home(const kube::ContainerStatus& status, const Home& home);

// Whether a pod's spec means the pilot's own image by this name.
bool names_home(const std::string& image, const Home& home);

// Whether the container of a status runs this image: by its digest, or by the very name. That it shows
// another name proves nothing, as one content has many.
bool shows_image(const kube::ContainerStatus& status, const std::string& reference);

// Whether the Hello that has just come is of the new image: the container was settled, its glue was connected
// when the patch was sent and has not gone without a goodbye, and the API has taken the patch.
bool proven_by_goodbye(const Switching& step);

// Whether the next switch can be proven by goodbye.
Switching::Proof proof_for(const Container& container);

// What the status says of an image that a goodbye has proven.
enum class Check : std::uint8_t {
  as_told,   // by digest or name it is what was asked for, or it cannot be the image before it
  unknown,   // neither is seen: two names may be of one content
  doubtful,  // it is the pilot's own image, or what ran before and of another digest: somebody else ended a
             // container before the kubelet had heard of its patch
};
Check check(const Container& container, const kube::ContainerStatus& status, const Home& home);

// The id of the container that a process is in, from the texts of its /proc/PID/cgroup and of our own: the 64
// hexadecimal digits that containerd, CRI-O and podman put into the name of a container's control group,
// with both cgroup drivers. What stands in our own too is a pod's or an outer container's. Empty: it does
// not tell.
std::string container_id_in(std::string_view cgroup, std::string_view own_cgroup);

}  // namespace glidepod::agent
