#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace glidepod::provisioner {

constexpr std::size_t k_any_size = std::numeric_limits<std::size_t>::max();

struct Fitting {
  std::string entries;  // as text, with commas between them
  std::vector<std::size_t> left_out;
};

// Of so many entries those whose text takes at most so many bytes together: all of them in their order, or
// else those of the lowest rank, until one does not fit. One of them exists as JSON at any time: as such they
// take ten times the memory.
Fitting fitting(std::size_t number, std::size_t most, const std::function<nlohmann::json(std::size_t)>& make,
                const std::function<std::int64_t(std::size_t)>& rank);

}  // namespace glidepod::provisioner
