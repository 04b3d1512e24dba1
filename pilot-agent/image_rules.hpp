#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"

namespace glidepod::agent {

// Which image of a registry stands for a path: "/cvmfs/unpacked.example/{path} -> registry.example/{path}".
struct ImageRule {
  std::string prefix;       // of the path
  std::string replacement;  // for the prefix
  static Result<ImageRule> parse(std::string_view text);
};

// The image as a pod names it, in full ("docker.io/library/alpine:3.19"), for an image as Apptainer's command
// line names it: docker://NAME, NAME, or a path that a rule covers. The Error is for the user.
Result<std::string> pod_image(std::string_view image, const std::vector<ImageRule>& rules);

}  // namespace glidepod::agent
