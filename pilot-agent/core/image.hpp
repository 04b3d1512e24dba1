#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace glidepod::agent {

// The image that a container has or is to have: home, which is the pilot's own image, or a job's image by its
// name as written in a pod. docs/decisions/image-strings.md has its way from a job to the pod.
class Image {
 public:
  static Image home() { return {}; }
  explicit Image(std::string name) : name_(std::move(name)) {}

  bool is_home() const { return !name_; }
  // The name of a job's image. Home must not be asked for it.
  const std::string& name() const { return name_.value(); }
  // The name of a job's image, or this text for home.
  std::string_view name_or(std::string_view home) const { return name_ ? std::string_view(*name_) : home; }

  friend bool operator==(const Image&, const Image&) = default;

 private:
  Image() = default;

  std::optional<std::string> name_;
};

}  // namespace glidepod::agent
