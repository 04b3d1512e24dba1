#pragma once

#include <nlohmann/json.hpp>

#include "lib/base/result.hpp"
#include "provisioner/service/options.hpp"

namespace glidepod::provisioner {

// What one cycle would do, as report() puts it. Nothing is made or removed, nothing is written.
Result<nlohmann::json> plan_once(const ServiceOptions& options);

// Cycle after cycle until SIGTERM or SIGINT; what is under way then is waited for, but not begun again.
// Settings are read again on SIGHUP and when their files change: what changed is logged, and settings that
// are wrong leave the old ones in force.
Result<void> serve(const ServiceOptions& options);

}  // namespace glidepod::provisioner
