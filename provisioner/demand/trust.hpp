#pragma once

#include <string>

#include "lib/pattern/pattern.hpp"
#include "provisioner/settings/settings.hpp"

namespace glidepod::provisioner {

// Names that others give themselves: of daemons, pods, owners. HTCondor's and Kubernetes' own are shorter.
inline constexpr std::size_t k_longest_name = 256;

// A pattern that the settings have: they hold only such as can be compiled.
inline Pattern settings_pattern(const std::string& text) {
  return Pattern::compile(text).value();
}

// Whose jobs count, by [htcondor] schedd_whitelist_regexp and schedd_identity_regexp.
class TrustedSchedds {
 public:
  explicit TrustedSchedds(const HtcondorSettings& settings)
      : names_(settings_pattern(settings.schedd_whitelist_regexp)),
        identities_(settings_pattern(settings.schedd_identity_regexp)) {}
  // Longer names are nobody's.
  bool hold(const std::string& name, const std::string& identity) const {
    return name.size() <= k_longest_name && identity.size() <= k_longest_name && !identity.empty() &&
           names_.surely_matches(name) && identities_.surely_matches(identity);
  }

 private:
  Pattern names_, identities_;
};

}  // namespace glidepod::provisioner
