#pragma once

#include <string_view>

#include "lib/base/fd.hpp"
#include "lib/base/result.hpp"
#include "store/limits.hpp"
#include "store/squashfs.hpp"

namespace glidepod::store {

// Whether a file begins as the tar that an agent makes of an image that is a folder. No tar of a user's does.
bool is_folder(std::string_view start);

// Reads such a tar. What it says may be hostile. Errors are sentences for the image's user.
Result<void> read_folder(const Fd& file, const Limits& limits, Visitor& visitor);

}  // namespace glidepod::store
