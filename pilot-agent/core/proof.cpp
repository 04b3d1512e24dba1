#include "pilot-agent/core/proof.hpp"

#include <algorithm>
#include <set>

#include "lib/kube/image_reference.hpp"

namespace glidepod::agent {

using kube::ContainerStatus;
using kube::ImageReference;

namespace {
constexpr std::size_t k_id_length = 64;

std::string full_name(const std::string& text) {
  const auto reference = ImageReference::parse(text);
  return reference ? reference->full_name() : std::string();
}

std::set<std::string_view> ids_in(std::string_view cgroup) {
  const auto hexadecimal = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  std::set<std::string_view> ids;
  for (std::size_t begin = 0; begin < cgroup.size();) {
    const auto rest = cgroup.substr(begin);
    const auto length = static_cast<std::size_t>(std::ranges::find_if_not(rest, hexadecimal) - rest.begin());
    if (length == k_id_length) ids.insert(rest.substr(0, length));
    begin += std::max<std::size_t>(length, 1);
  }
  return ids;
}
}  // namespace

bool is_of(const ContainerStatus& status, std::string_view container_id) {
  if (container_id.empty()) return false;
  const std::string_view shown = status.container_id;  // "containerd://ID"
  const auto slashes = shown.find("://");
  return slashes != std::string_view::npos && shown.substr(slashes + 3) == container_id;
}

bool shows_home(const ContainerStatus& status, const Home& home) {
  return !home.image_id.empty() && status.image_id == home.image_id;
}

bool names_home(const std::string& reference, const Home& home) {
  if (reference == home.image) return true;
  if (kube::is_by_id(reference))
    return kube::is_digest(home.image_id) && home.image_id.starts_with(reference);
  const auto image = ImageReference::parse(reference);
  return image && !image->digest.empty() && image->digest == home.digest;
}

bool shows_image(const ContainerStatus& status, const std::string& reference) {
  if (kube::is_by_id(reference))
    return kube::is_digest(status.image_id) && status.image_id.starts_with(reference);
  const auto image = ImageReference::parse(reference);
  if (!image) return false;
  if (!image->digest.empty()) return kube::digest_of(status.image_id) == image->digest;
  return full_name(status.image) == image->full_name();
}

bool proven_by_goodbye(const Switching& step) {
  return step.proof == Switching::Proof::goodbye && step.answered;
}

Switching::Proof proof_for(const Container& container) {
  return container.settled() && container.glue != 0 ? Switching::Proof::goodbye : Switching::Proof::status;
}

Check check(const Container& container, const ContainerStatus& status, const Home& home) {
  if (shows_image(status, container.told.admitted)) return Check::as_told;
  // This holds whatever ran before: if somebody else ended a container, the kubelet may be one image behind.
  if (shows_home(status, home)) return container.told.asked.is_home() ? Check::as_told : Check::doubtful;
  if (container.shown_before.empty()) return Check::unknown;
  if (container.shown_before != status.image_id) return Check::as_told;
  // A name may be another name of the content before; another digest cannot.
  const auto admitted = ImageReference::parse(container.told.admitted);
  const bool told = kube::is_by_id(container.told.admitted)
                        ? kube::is_digest(status.image_id)
                        : admitted && !admitted->digest.empty() && !kube::digest_of(status.image_id).empty();
  return told ? Check::doubtful : Check::unknown;
}

std::string container_id_in(std::string_view cgroup, std::string_view own_cgroup) {
  std::set<std::string_view> ids = ids_in(cgroup);
  for (const std::string_view own : ids_in(own_cgroup)) ids.erase(own);
  return ids.size() == 1 ? std::string(*ids.begin()) : std::string();
}

}  // namespace glidepod::agent
