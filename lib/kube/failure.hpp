#pragma once

#include "lib/http/failure.hpp"

namespace glidepod::kube {

// Why a call of the API failed. reason and message come from the answer's Status object.
using Failure = http::Failure;

}  // namespace glidepod::kube
