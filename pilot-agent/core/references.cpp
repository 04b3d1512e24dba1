// The image names that the agent patches: the kubelet must start them at once, and start the right image.

#include "lib/kube/image_reference.hpp"
#include "pilot-agent/core/core.hpp"
#include "pilot-agent/core/words.hpp"

namespace glidepod::agent {

using kube::ImageReference;

namespace {
// A name with a tag that was never used before. To the kubelet this is a new image string. So it restarts the
// container without the pause that it makes for a string that it has seen fail or end. Only the digest
// decides what runs.
std::string with_nonce(std::string_view repository, std::string_view nonce, std::string_view digest) {
  return fmt::format("{}:{}@{}", repository, nonce, digest);
}
}  // namespace

std::string Core::nonce() {
  return fmt::format("{}-{}", policy_.nonce_prefix, ++last_nonce_);
}

// If admission leaves only the digest, all names of one content become the same. The next start by that name
// then waits for the kubelet's back-off, which is no failure.
void Core::look_at_names(const Container& container, const std::string& reference,
                         const std::string& admitted) {
  const auto asked = ImageReference::parse(reference), got = ImageReference::parse(admitted);
  if (tags_dropped_ || !asked || !got || asked->digest.empty() || asked->tag.empty()) return;
  if (got->digest != asked->digest || kube::keeps_tag(reference, admitted)) return;
  tags_dropped_ = true;
  warn(
      "event=tags_dropped container={} asked={} got={} reason=\"admission changes the tag of an image that "
      "has a digest: the kubelet may wait up to 300 seconds before it starts the same name again\"",
      container.name, word(reference), word(admitted));
}

void Core::look_at_home(const kube::Pod& pod) {
  const kube::ContainerStatus* status = pod.status(home_container_);
  if (status == nullptr || status->image_id.empty()) return;
  home_.image_id = status->image_id;
  home_.repository = kube::repository_of(status->image_id);
  home_.digest = kube::digest_of(status->image_id);
}

// Whether the image may be another name of the pilot's own content: it was seen to be, or it has the same
// repository. The content of such a container does not tell whether the kubelet started it before or after it
// heard of the patch.
bool Core::may_be_home(const std::string& image) const {
  if (like_home_.contains(image)) return true;
  const auto asked = ImageReference::parse(image);
  const auto own = ImageReference::parse(home_.repository);
  return asked && own && asked->digest.empty() && !known_.contains(image) &&
         asked->full_repository() == own->full_repository();
}

std::string Core::home_reference() {
  if (home_.digest.empty()) return home_.image;
  return with_nonce(home_.repository, nonce(), home_.digest);
}

// The name to patch. None if the pod has the image's name already and no other name for it is known: then the
// container must get another image in between.
std::optional<std::string> Core::reference_for(const Container& container, const std::string& image) {
  const auto known = known_.find(image);
  if (known != known_.end()) return with_nonce(known->second.repository, nonce(), known->second.digest);
  const auto reference = ImageReference::parse(image);
  if (reference && !reference->digest.empty())
    return with_nonce(reference->repository, nonce(), reference->digest);
  return container.told == image ? std::nullopt : std::optional(image);
}

}  // namespace glidepod::agent
