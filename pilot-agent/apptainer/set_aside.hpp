#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace glidepod::apptainer {

// Where what cannot come back is moved. HTCondor brings no folder back that a job has not named.
constexpr const char* k_set_aside = ".glidepod_set_aside";

// Moves aside, by the job's own rights, what lies at the top of its sandbox and is no file and no folder: a
// FIFO, a socket, a device, or a link to one. HTCondor's starter opens whatever lies there: it would wait for
// ever for who writes into a FIFO, and read /dev/zero to no end. Names some of them, each as a line may have
// it, in the order of their names: a job may leave millions.
struct SetAside {
  std::vector<std::string> names;  // at most k_most_named
  std::size_t count = 0;
};
constexpr std::size_t k_most_named = 10;
SetAside set_aside(const std::string& sandbox);

}  // namespace glidepod::apptainer
