#pragma once

#include <string>
#include <string_view>

#include "lib/base/result.hpp"

namespace glidepod::kube {

// An image reference as written in a pod: [registry/]repository[:tag][@digest].
struct ImageReference {
  std::string repository;  // as written, with the registry if one was named
  std::string tag;         // empty: none was written
  std::string digest;      // "sha256:..." or empty

  // Fails with "invalid reference format" where container runtimes do.
  static Result<ImageReference> parse(std::string_view text);

  // Whether the tag is "latest", written or not, and there is no digest. Then the kubelet's default for
  // imagePullPolicy is Always.
  bool floats() const { return digest.empty() && (tag.empty() || tag == "latest"); }
  // The name to look for in local storage. If there is a digest, the tag is ignored, as everywhere in
  // Kubernetes.
  std::string local_name() const;
  // The name as container runtimes show it: "alpine" and "docker.io/alpine" become
  // "docker.io/library/alpine:latest".
  std::string full_name() const;
  std::string full_repository() const;
};

// Whether a text is "sha256:" and 64 hexadecimal digits: a content's digest, and a node's own id of an image.
// A runtime finds an image on its node by the first digits of its id too, as long as no other image's id
// begins so.
constexpr std::size_t k_id_prefix = 7, k_id_digits = 64, k_least_id_digits = 16;
bool is_digest(std::string_view text);
// Whether the name is an id, or the beginning of one.
bool is_by_id(std::string_view name);

// Whether admission has kept the tag that was written. It may have changed the registry.
bool keeps_tag(const std::string& written, const std::string& admitted);

// The full name of an image as it is written. A text that is no reference stays as it is.
std::string full_name_of(const std::string& image);

}  // namespace glidepod::kube
