#pragma once

#include <functional>
#include <string>

#include "provisioner/settings/settings.hpp"

namespace glidepod::provisioner {

// How a job's owner is called in a report; empty: as they are.
using OwnerNaming = std::function<std::string(const std::string& owner)>;

// By the settings: "owner-1f6b02c9" for each owner, the same as long as the key is the same. Without the key
// nobody finds an owner by trying names. Without a key file the key given is used.
Result<OwnerNaming> owner_naming(const PolicySettings& settings, const std::string& key);

}  // namespace glidepod::provisioner
