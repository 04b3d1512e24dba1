#pragma once

#include <optional>
#include <string>

#include "provisioner/decide/drained.hpp"
#include "provisioner/service/cycle.hpp"
#include "provisioner/service/options.hpp"

namespace glidepod::provisioner {

// `provisioner drain`, `kill` and `undrain`.
struct DrainOptions {
  std::optional<Drained::Mode> mode;  // none: it is given back
  std::string group, node, place;     // one of them
  std::string reason;
  bool yes = false;   // else it only shows what would be done
  bool list = false;  // only what is drained now
};

// What it is about, and what that means to the pods that there are, for people.
std::string describe(const Drained& entry, const DrainOptions& options, const Observation& seen, Time now);
// The entry that the options name, as these groups, places and entries have it.
Result<Drained> entry_named(const DrainOptions& options, const Observation& seen,
                            const std::vector<PlacePolicy>& places, const DrainList& list);
// The list after it.
DrainList changed_by(DrainList list, const Drained& entry, const DrainOptions& options);

// Does it, or shows it; what there is to tell of it.
Result<std::string> drain_once(const ServiceOptions& options, const DrainOptions& what);

}  // namespace glidepod::provisioner
