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

  // What the kubelet defaults imagePullPolicy from: the tag, "latest" if neither tag nor digest is written.
  bool floats() const { return digest.empty() && (tag.empty() || tag == "latest"); }
  // The name to look for in local storage; a tag beside a digest is ignored, as everywhere in Kubernetes.
  std::string local_name() const;
  // As container runtimes show it: "alpine" and "docker.io/alpine" are "docker.io/library/alpine:latest".
  std::string full_name() const;
  std::string full_repository() const;
};

// Whether admission has kept the tag that was written; it may have changed the registry.
bool keeps_tag(const std::string& written, const std::string& admitted);

// The full name of an image as written; what is no reference stays as it is.
std::string full_name_of(const std::string& image);

}  // namespace glidepod::kube
