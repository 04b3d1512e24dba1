#pragma once

#include <string>
#include <vector>

#include "provisioner/simulate/simulate.hpp"

namespace glidepod::provisioner {

// A simulation's samples: every one as CSV with a header; about rows of them as a table with bars; all as a
// drawing.
std::string to_csv(const std::vector<Sample>& samples);
std::string to_table(const std::vector<Sample>& samples, std::size_t rows);
std::string to_svg(const std::vector<Sample>& samples);

}  // namespace glidepod::provisioner
