#pragma once

#include <cstdint>

#include "tests/explore/model.hpp"

namespace glidepod::explore {

// A number for all of the model and the core that decides what can happen from here on. Two states have the
// same if they differ only in what time it is, in the numbers of connections, jobs, patches and versions, and
// in made-up tags. search.cpp compares what follows, so that a field that is forgotten here is noticed.
std::uint64_t digest_of(const Model& model);

}  // namespace glidepod::explore
