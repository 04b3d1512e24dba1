#pragma once

#include <nlohmann/json.hpp>

#include <string>

#include "provisioner/service/options.hpp"

namespace glidepod::provisioner {

struct WhyOptions {
  std::string job;          // "12.0", or "12" for its first
  std::string schedd;       // whose queue; empty: all
  std::string status_file;  // of the running instance; empty: as the settings say
};

// Everything between one job and a pilot. Nothing is made or changed.
Result<nlohmann::json> why_once(const ServiceOptions& options, const WhyOptions& why);

// Such a JSON for people.
std::string why_text(const nlohmann::json& answer);

}  // namespace glidepod::provisioner
