#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "lib/kube/pod.hpp"
#include "pilot-agent/core/proof.hpp"

namespace glidepod::agent {

// What is known of the names and digests of images, and so by which name a container gets one: the kubelet
// must start it at once, and start the right image. docs/decisions/image-strings.md has the reasons.
class References {
 public:
  // nonce_prefix: begins each made-up tag; no earlier agent of the pod had it.
  explicit References(std::string nonce_prefix) : nonce_prefix_(std::move(nonce_prefix)) {}

  // The pilot's own image. image: its name in the pod's spec. status: of the pilot's own container.
  const Home& home() const { return home_; }
  void set_home(std::string image) { home_.image = std::move(image); }
  void see_home(const kube::ContainerStatus& status);

  // Whether the image, as jobs ask for it, is surely the pilot's own.
  bool is_home(const std::string& image) const { return image == home_.image || home_names_.contains(image); }
  // Whether the image may be another name of the pilot's own content: it was seen to be, or it has the same
  // repository. The content of such a container does not tell whether the kubelet started it before or after
  // it heard of the patch.
  bool may_be_home(const std::string& image) const;
  // A container of this image showed the pilot's own content; and it was proven that this is its content.
  void looked_like_home(const std::string& image) { like_home_.insert(image); }
  void proved_home(const std::string& image);

  bool knows(const std::string& image) const { return known_.contains(image); }
  // Learns an image's digest. admitted: the name that admission made of it. The digest, if it is news; else
  // empty.
  std::string learn(const std::string& image, const std::string& admitted,
                    const kube::ContainerStatus& status);
  // Whether the status shows what is known of the image already.
  bool fits(const std::string& image, const kube::ContainerStatus& status) const;
  // The image's name, with its digest if that is known. A digest means the content that the container has.
  std::string exact_name(const std::string& image) const;

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
  // told: the name that the container has in the pod. None if that is the image's name already and no other
  // one is known: then the container must get another image in between.
  std::optional<Reference> reference_for(const std::string& image, const std::string& told,
                                         IdUses* by_id = nullptr);

  // Whether the kubelet starts images by the beginning of the node's id of them. An empty image is the
  // pilot's own.
  bool ids_work() const { return ids_state_ == Ids::work; }
  bool may_try_id(const std::string& image) const {
    return ids_state_ == Ids::untried && !id_of(image).empty();
  }
  void id_worked() { ids_state_ = Ids::work; }
  // The runtime or a rule of the cluster's did not take the id of this image.
  void id_refused(const std::string& image);

  // Whether admission leaves only the digest of a name that has both. All names of one content become the
  // same then, and the next start by that name waits for the kubelet's back-off, which is no failure.
  bool tags_dropped() const { return tags_dropped_; }
  // True if this answer is the first that shows it.
  bool see_admitted(const std::string& asked, const std::string& admitted);

 private:
  struct Known {
    std::string repository, digest;
  };
  Reference made_up(const Known& content);
  std::string id_of(const std::string& image) const;

  std::string nonce_prefix_;
  std::uint64_t last_nonce_ = 0;
  Home home_;
  std::set<std::string, std::less<>> like_home_;     // images that showed the pilot's own content
  std::set<std::string, std::less<>> home_names_;    // proven names of the pilot's own content without digest
  std::map<std::string, Known, std::less<>> known_;  // by image as jobs ask for it
  std::map<std::string, std::string, std::less<>>
      ids_;  // the node's, of images without a digest, by the same
  enum class Ids : std::uint8_t { untried, work, refused };
  Ids ids_state_ = Ids::untried;
  bool tags_dropped_ = false;
};

}  // namespace glidepod::agent
