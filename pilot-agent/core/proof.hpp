#pragma once

#include <string>
#include <string_view>

#include "lib/kube/pod.hpp"
#include "pilot-agent/core/state.hpp"

// What proves which image a container runs. All are pure functions. Each is a rule that protects a job from a
// wrong image; tests/simulate drops each rule in turn and must notice.
namespace glidepod::agent {

// The pilot's own image, as the pod's status names it in the pilot's own container.
struct Home {
  std::string image;       // the name in the pod's spec
  std::string image_id;    // the imageID in its status
  std::string repository;  // the repository in image_id; empty: it names none
  std::string digest;
};

// Whether a status is of the container with this id. A late status has another id, and so has the status of a
// container whose glue never said Hello.
bool is_of(const kube::ContainerStatus& status, std::string_view container_id);

// Whether the container of a status runs the pilot's own image. Both imageIDs are of one node.
bool shows_home(const kube::ContainerStatus& status, const Home& home);

// Whether this name in a pod's spec means the pilot's own image.
bool names_home(const std::string& reference, const Home& home);

// Whether the container of a status runs the image of this name, by its digest, by the node's id of it, or by
// exactly this name. Another name in the status proves nothing, since one content has many names.
bool shows_image(const kube::ContainerStatus& status, const std::string& reference);

// Whether the Hello that has just come is from the new image. It is if the container was settled, its glue
// was connected when the patch was sent and went with a goodbye, and the API has taken the patch.
bool proven_by_goodbye(const Switching& step);

// Whether the next switch can be proven by goodbye.
Switching::Proof proof_for(const Container& container);

// What the status says about an image that a goodbye has proven.
enum class Check : std::uint8_t {
  as_told,   // by digest or name it is the image that was asked for, or it cannot be the one before
  unknown,   // the status shows neither: two names may be of one content
  doubtful,  // it is the pilot's own image, or what ran before with another digest: somebody else ended the
             // container before the kubelet had heard of the patch
};
Check check(const Container& container, const kube::ContainerStatus& status, const Home& home);

// The id of the container that a process is in, from its /proc/PID/cgroup and from our own. containerd, CRI-O
// and podman put the id's 64 hexadecimal digits into the name of a container's control group, with both
// cgroup drivers. An id that is in our own text too belongs to the pod or to an outer container. Empty: the
// text does not tell the id.
std::string container_id_in(std::string_view cgroup, std::string_view own_cgroup);

}  // namespace glidepod::agent
