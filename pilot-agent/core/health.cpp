#include "pilot-agent/core/health.hpp"

#include <fmt/format.h>

namespace glidepod::agent {

void Health::failed(std::string why) {
  ++failures_;
  last_failure_ = std::move(why);
}

std::optional<std::string> Health::too_many_failures() const {
  if (give_up_after_ == 0 || failures_ < give_up_after_) return std::nullopt;
  return fmt::format("{} failures of the infrastructure in a row, the last one: {}", failures_,
                     last_failure_);
}

}  // namespace glidepod::agent
