#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/condor/classad.hpp"
#include "provisioner/demand/group.hpp"

namespace glidepod::provisioner {

// Which attributes pilots' ads have beside HTCondor's own and those of images/pilot/config.d.
struct PilotAttributes {
  bool known = false;  // no: they may have any, and nothing is said of them
  List more;           // names, or beginnings of names with a "*" behind them
  bool operator==(const PilotAttributes&) const = default;
};

// Why no pilot that is made for a job will ever take it.
struct Unmet {
  std::string clause;              // of its requirements
  std::string why;                 // for people: what pilots lack, or have
  std::vector<std::string> lacks;  // names in the clause that neither the job nor any pilot has
};

// The first clause of the job's requirements that is false or undefined in every ad that a pilot in a pod of
// its group can have. None: there is no such clause, or this cannot be told. Of most attributes only the
// names are known; of Cpus, Memory and GPUs how much they are at most.
std::optional<Unmet> unmet_by_pilots(const condor::Ad& job, const Group& group,
                                     const PilotAttributes& pilots);

// Whether an ad of a pilot may have the attribute.
bool may_have(const PilotAttributes& pilots, std::string_view attribute);

}  // namespace glidepod::provisioner
