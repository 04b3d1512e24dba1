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

bool References::may_be_home(const std::string& image) const {
  if (like_home_.contains(image)) return true;
  const auto asked = ImageReference::parse(image);
  const auto own = ImageReference::parse(home_.repository);
  return asked && own && asked->digest.empty() && !known_.contains(image) &&
         asked->full_repository() == own->full_repository();
}

void References::proved_home(const std::string& image) {
  // If the node's imageIDs name no repository, nothing more is known about the image.
  if (home_.digest.empty())
    home_names_.insert(image);
  else
    known_.emplace(image, Known{home_.repository, home_.digest});
  like_home_.erase(image);
}

std::string References::learn(const std::string& image, const std::string& admitted,
                              const ContainerStatus& status) {
  const auto asked = ImageReference::parse(image);
  const auto got = ImageReference::parse(admitted);
  const auto shown = ImageReference::parse(kube::repository_of(status.image_id));
  std::string digest = kube::digest_of(status.image_id);
  if (kube::is_digest(status.image_id) && asked && asked->digest.empty())
    ids_.insert_or_assign(image, status.image_id);
  // The status may show another name that the node has for the image, and the registry may not know that
  // name. An image that is named by its digest has no other name.
  if (digest.empty() || !asked || !asked->digest.empty() || !got || !shown) return {};
  if (shown->full_repository() != got->full_repository() &&
      shown->full_repository() != asked->full_repository())
    return {};
  const bool news = known_.emplace(image, Known{asked->repository, digest}).second;
  return news ? digest : std::string();
}

bool References::fits(const std::string& image, const ContainerStatus& status) const {
  const auto known = known_.find(image);
  if (known != known_.end() && known->second.digest == kube::digest_of(status.image_id)) return true;
  return home_names_.contains(image) && shows_home(status, home_);
}

std::string References::exact_name(const std::string& image) const {
  if (image == home_.image && !home_.digest.empty()) return home_.repository + "@" + home_.digest;
  const auto known = known_.find(image);
  return known == known_.end() ? image : known->second.repository + "@" + known->second.digest;
}

// A name with a tag that was never used before. To the kubelet this is a new image string. So it restarts the
// container without the pause that it makes for a string that it has seen fail or end. Only the digest
// decides what runs.
References::Reference References::made_up(const Known& content) {
  return {fmt::format("{}:{}-{}@{}", content.repository, nonce_prefix_, ++last_nonce_, content.digest), true};
}

// The node's id of an image of which no digest is known; empty: it is not known either.
std::string References::id_of(const std::string& image) const {
  if (image.empty()) return kube::is_digest(home_.image_id) ? home_.image_id : std::string();
  const auto found = ids_.find(image);
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

void References::id_refused(const std::string& image) {
  if (ids_state_ != Ids::work || image.empty()) ids_state_ = Ids::refused;
  if (!image.empty()) ids_.erase(image);
}

References::Reference References::home_reference(IdUses* by_id) {
  const auto id = id_of({});
  if (by_id != nullptr && !id.empty()) return {by_next_length(*by_id, id)};
  if (home_.digest.empty()) return {home_.image};
  return made_up({home_.repository, home_.digest});
}

std::optional<References::Reference> References::reference_for(const std::string& image,
                                                               const std::string& told, IdUses* by_id) {
  if (const auto known = known_.find(image); known != known_.end()) return made_up(known->second);
  const auto reference = ImageReference::parse(image);
  if (reference && !reference->digest.empty()) return made_up({reference->repository, reference->digest});
  const auto id = id_of(image);
  if (by_id != nullptr && !id.empty()) return Reference{by_next_length(*by_id, id)};
  return told == image ? std::nullopt : std::optional(Reference{image});
}

bool References::see_admitted(const std::string& asked, const std::string& admitted) {
  const auto wanted = ImageReference::parse(asked), got = ImageReference::parse(admitted);
  if (tags_dropped_ || !wanted || !got || wanted->digest.empty() || wanted->tag.empty()) return false;
  if (got->digest != wanted->digest || kube::keeps_tag(asked, admitted)) return false;
  return tags_dropped_ = true;
}

}  // namespace glidepod::agent
