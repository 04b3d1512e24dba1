#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.hpp"

namespace glidepod::provisioner {

// HTCondor's tools take a token only from a file of their own user that nobody else may read, and what is
// mounted from a Secret is root's. So the files of one folder are copied into another, with mode 0600: those
// that differ, and what is there no more is removed. A file that cannot be read is an Error; the others are
// copied all the same.
Result<void> copy_tokens(const std::string& from, const std::string& to);

// When the tokens of a folder end (RFC 7519: exp).
struct TokenEnds {
  // A sentence for each whose time is over, or will be within k_token_notice. HTCondor's tools only say then
  // that they could not authenticate.
  std::vector<std::string> problems;
  std::optional<std::chrono::sys_seconds> first;  // none: all of them last
};
inline constexpr std::chrono::days k_token_notice{7};
TokenEnds ends_of_tokens(const std::string& folder, std::chrono::sys_seconds now);

}  // namespace glidepod::provisioner
