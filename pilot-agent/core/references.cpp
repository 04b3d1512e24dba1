#include "pilot-agent/core/references.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/kube/image_reference.hpp"

namespace glidepod::agent {

using kube::ContainerStatus;
using kube::ImageReference;

void References::see_home(const ContainerStatus& status) {
  if (status.image_id.empty()) return;
  home_.image_id = status.image_id;
  home_.repository = kube::repository_of(status.image_id);
  home_.digest = kube::digest_of(status.image_id);
}

void References::begin(const kube::Pod& pod) {
  own_container_ = pod.pilot()->name;
  set_home(pod.pilot()->image);
  see(pod);
}

void References::see(const kube::Pod& pod) {
  if (const ContainerStatus* own = pod.status(own_container_)) see_home(*own);
}

Image References::asked_by(const Request& request) const {
  const Image& asked = request.asked;
  if (request.any_image || asked.is_home()) return Image::home();
  const bool own = asked.name() == home_.image || home_names_.contains(asked.name());
  return own ? Image::home() : asked;
}

bool References::may_be_home(const Image& image) const {
  if (like_home_.contains(image.name())) return true;
  const auto asked = ImageReference::parse(image.name());
  const auto own = ImageReference::parse(home_.repository);
  return asked && own && asked->digest.empty() && !knows(image) &&
         asked->full_repository() == own->full_repository();
}

void References::looked_like_home(const Image& image) {
  if (!image.is_home()) like_home_.insert(image.name());
}

void References::proved_home(const Image& image) {
  // If the node's imageIDs name no repository, nothing more is known about the image.
  if (home_.digest.empty())
    home_names_.insert(image.name());
  else
    known_.emplace(image.name(), Known{home_.repository, home_.digest});
  like_home_.erase(image.name());
}

std::string References::learn(const Image& image, const std::string& admitted,
                              const ContainerStatus& status) {
  if (image.is_home()) return {};
  const auto asked = ImageReference::parse(image.name());
  const auto got = ImageReference::parse(admitted);
  const auto shown = ImageReference::parse(kube::repository_of(status.image_id));
  std::string digest = kube::digest_of(status.image_id);
  if (kube::is_digest(status.image_id) && asked && asked->digest.empty())
    ids_.insert_or_assign(image.name(), status.image_id);
  // The status may show another name that the node has for the image, and the registry may not know that
  // name. An image that is named by its digest has no other name.
  if (digest.empty() || !asked || !asked->digest.empty() || !got || !shown) return {};
  if (shown->full_repository() != got->full_repository() &&
      shown->full_repository() != asked->full_repository())
    return {};
  const bool news = known_.emplace(image.name(), Known{asked->repository, digest}).second;
  return news ? digest : std::string();
}

bool References::fits(const Image& image, const ContainerStatus& status) const {
  if (image.is_home()) return false;
  const auto known = known_.find(image.name());
  if (known != known_.end() && known->second.digest == kube::digest_of(status.image_id)) return true;
  return home_names_.contains(image.name()) && shows_home(status, home_);
}

std::string References::exact_name(const Image& image) const {
  std::string name = name_of(image);
  if (name == home_.image && !home_.digest.empty()) return home_.repository + "@" + home_.digest;
  const auto known = known_.find(name);
  return known == known_.end() ? name : known->second.repository + "@" + known->second.digest;
}

std::string References::pull_name(const Image& image) const {
  std::string name = exact_name(image);
  const auto reference = ImageReference::parse(name);
  return reference && !reference->digest.empty() ? reference->local_name() : name;
}

// A name with a tag that was never used before. To the kubelet this is a new image string. So it restarts the
// container without the pause that it makes for a string that it has seen fail or end. Only the digest
// decides what runs.
References::Reference References::made_up(const Known& content) {
  return {fmt::format("{}:{}-{}@{}", content.repository, nonce_prefix_, ++last_nonce_, content.digest), true};
}

// The node's id of an image of which no digest is known; empty: it is not known either.
std::string References::id_of(const Image& image) const {
  if (image.is_home()) return kube::is_digest(home_.image_id) ? home_.image_id : std::string();
  const auto found = ids_.find(image.name());
  return found == ids_.end() ? std::string() : found->second;
}

namespace {
// Each length of an id's beginning is a name of its own to the kubelet. They come round; by then the pause of
// one is long over, unless the container changes its image every few seconds.
std::string by_next_length(References::IdUses& uses, const std::string& id) {
  constexpr unsigned k_lengths = kube::k_id_digits - kube::k_least_id_digits + 1;
  return id.substr(0, kube::k_id_prefix + kube::k_least_id_digits + uses[id]++ % k_lengths);
}
}  // namespace

void References::id_refused(const Image& image) {
  if (ids_state_ != Ids::work || image.is_home()) ids_state_ = Ids::refused;
  if (!image.is_home()) ids_.erase(image.name());
}

References::Reference References::home_reference(IdUses* by_id) {
  const auto id = id_of(Image::home());
  if (by_id != nullptr && !id.empty()) return {by_next_length(*by_id, id)};
  if (home_.digest.empty()) return {home_.image};
  return made_up({home_.repository, home_.digest});
}

std::optional<References::Reference> References::reference_for(const Image& image, const std::string& told,
                                                               IdUses* by_id) {
  const std::string& name = image.name();
  if (const auto known = known_.find(name); known != known_.end()) return made_up(known->second);
  const auto reference = ImageReference::parse(name);
  if (reference && !reference->digest.empty()) return made_up({reference->repository, reference->digest});
  const auto id = id_of(image);
  if (by_id != nullptr && !id.empty()) return Reference{by_next_length(*by_id, id)};
  return told == name ? std::nullopt : std::optional(Reference{name});
}

bool References::see_admitted(const std::string& reference, const std::string& admitted) {
  const auto patched = ImageReference::parse(reference), got = ImageReference::parse(admitted);
  if (tags_dropped_ || !patched || !got || patched->digest.empty() || patched->tag.empty()) return false;
  if (got->digest != patched->digest || kube::keeps_tag(reference, admitted)) return false;
  return tags_dropped_ = true;
}

}  // namespace glidepod::agent
