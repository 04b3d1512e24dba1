#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "lib/base/result.hpp"

namespace glidepod::provisioner {

// HTCondor's tools take a token only from a file of their own user that nobody else may read, and what is
// mounted from a Secret is root's. So the files of one folder are copied into another, with mode 0600: those
// that differ, and what is there no more is removed. A file that cannot be read is an Error; the others are
// copied all the same.
Result<void> copy_tokens(const std::string& from, const std::string& to);

// A sentence for each token of a folder whose time is over (RFC 7519: exp). HTCondor's tools only say that
// they could not authenticate.
std::vector<std::string> expired_tokens(const std::string& folder, std::chrono::sys_seconds now);

}  // namespace glidepod::provisioner
