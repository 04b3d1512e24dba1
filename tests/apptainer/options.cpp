// In place of the shipped program's: a test says by two variables where its agent is, and how long to stay
// without one.

#include <stdlib.h>

#include "lib/base/text.hpp"
#include "pilot-agent/apptainer/handover.hpp"

namespace glidepod::apptainer {

HandoverOptions usual_options(std::string socket) {
  HandoverOptions options;
  options.socket = std::move(socket);
  if (const char* own = ::secure_getenv("TEST_EXEC_SOCKET")) options.socket = own;
  if (const char* stay = ::secure_getenv("TEST_STAY_MS"))
    if (const auto number = parse_integer(stay)) options.stay_without_agent = Milliseconds(number.value());
  return options;
}

}  // namespace glidepod::apptainer
