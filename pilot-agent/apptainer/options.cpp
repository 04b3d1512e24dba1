#include "pilot-agent/apptainer/handover.hpp"

namespace glidepod::apptainer {

HandoverOptions usual_options(std::string socket) {
  HandoverOptions options;
  options.socket = std::move(socket);
  return options;
}

}  // namespace glidepod::apptainer
