#pragma once

#include "lib/base/result.hpp"
#include "podhost/options.hpp"

namespace glidepod::podhost {

// Serves pods until SIGTERM or SIGINT. An error is one of the start; once ready, podhost keeps going.
Result<void> run_daemon(const Options& options);

}  // namespace glidepod::podhost
