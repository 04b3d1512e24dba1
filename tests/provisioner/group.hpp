#pragma once

#include "provisioner/demand/group.hpp"

namespace glidepod::provisioner {

// Of jobs that ask for so many CPUs, and else for what is usual.
inline Group group(std::int64_t cpus) {
  Group result;
  result.cpus = cpus;
  return result;
}

}  // namespace glidepod::provisioner
