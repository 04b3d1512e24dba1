#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "lib/kube/pod.hpp"
#include "pilot-agent/core/image.hpp"
#include "pilot-agent/core/proof.hpp"
#include "pilot-agent/core/types.hpp"

namespace glidepod::agent {

// What is known of the names and digests of images, and so by which name a container gets one: the kubelet
// must start it at once, and start the right image. docs/decisions/image-strings.md has the reasons.
class References {
 public:
  // nonce_prefix: begins each made-up tag; no earlier agent of the pod had it.
  explicit References(std::string nonce_prefix) : nonce_prefix_(std::move(nonce_prefix)) {}

  // The pilot's own image. image: its name in the pod's spec. status: that of the pilot's own container.
  const Home& home() const { return home_; }
  void set_home(std::string image) { home_.image = std::move(image); }
  void see_home(const kube::ContainerStatus& status);
  // The same from the pod, as it was when the agent started and as it is now.
  void begin(const kube::Pod& pod);
  void see(const kube::Pod& pod);

  // The image that the request asks for: home, also where it has a name that is surely another one of home.
  Image asked_by(const Request& request) const;
  // Whether a job's image may be another name of the pilot's own content: it was seen to be, or it has the
  // same repository. The content of such a container does not tell whether the kubelet started it before or
  // after it heard of the patch.
  bool may_be_home(const Image& image) const;
  // A container of this image showed the pilot's own content; and it was proven that this is the content of a
  // job's image.
  void looked_like_home(const Image& image);
  void proved_home(const Image& image);

  // Whether the digest of a job's image is known.
  bool knows(const Image& image) const { return !image.is_home() && known_.contains(image.name()); }
  // Learns the digest of a job's image. admitted: the name that admission made of it. The digest, if it is
  // news; else empty.
  std::string learn(const Image& image, const std::string& admitted, const kube::ContainerStatus& status);
  // Whether the status shows what is known of the image already.
  bool fits(const Image& image, const kube::ContainerStatus& status) const;
  // The image's name as written in a pod; with its digest if that is known, which means the content that the
  // container has; and to pull it by, without a tag that would mean nothing.
  std::string name_of(const Image& image) const { return std::string(image.name_or(home_.image)); }
  std::string exact_name(const Image& image) const;
  std::string pull_name(const Image& image) const;

  // A name to patch.
  struct Reference {
    std::string name;
    bool once = false;  // it was made up, and no container gets it again
  };
  // How often a container got a name by each id.
  using IdUses = std::map<std::string, unsigned, std::less<>>;
  // by_id: those of the container, where an image without a digest is named by the node's id of it, if that
  // is known; null: by its plain name.
  Reference home_reference(IdUses* by_id = nullptr);
  // For a job's image. told: the reference that the container had last. None if that is the image's name
  // already and no other one is known: then the container must get another image in between.
  std::optional<Reference> reference_for(const Image& image, const std::string& told,
                                         IdUses* by_id = nullptr);

  // Whether the kubelet starts images by the beginning of the node's id of them.
  bool ids_work() const { return ids_state_ == Ids::work; }
  bool may_try_id(const Image& image) const { return ids_state_ == Ids::untried && !id_of(image).empty(); }
  void id_worked() { ids_state_ = Ids::work; }
  // The runtime or a rule of the cluster's did not take the id of this image.
  void id_refused(const Image& image);

  // Whether admission leaves only the digest of a name that has both. All names of one content become the
  // same then, and the next start by that name waits for the kubelet's back-off, which is no failure.
  bool tags_dropped() const { return tags_dropped_; }
  // True if this answer is the first that shows it.
  bool see_admitted(const std::string& reference, const std::string& admitted);

 private:
  friend struct Inside;  // as in core.hpp
  struct Known {
    std::string repository, digest;
  };
  Reference made_up(const Known& content);
  std::string id_of(const Image& image) const;

  std::string nonce_prefix_;
  std::uint64_t last_nonce_ = 0;
  Home home_;
  std::string own_container_;  // the name of the pilot's own container
  // By the names of jobs' images.
  std::set<std::string, std::less<>> like_home_;         // those that showed the pilot's own content
  std::set<std::string, std::less<>> home_names_;        // those that are proven to, without a digest
  std::map<std::string, Known, std::less<>> known_;      // those with a digest that is known
  std::map<std::string, std::string, std::less<>> ids_;  // the node's, of those without a digest
  enum class Ids : std::uint8_t { untried, work, refused };
  Ids ids_state_ = Ids::untried;
  bool tags_dropped_ = false;
};

}  // namespace glidepod::agent
