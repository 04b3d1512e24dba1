#pragma once

#include <functional>

#include "lib/http/request.hpp"

namespace glidepod::http {

// For a thread that has no Loop: makes one request and waits for its answer. Each thread keeps its
// connection. An Error has a Lost as its fact.
struct Callbacks {
  // Called about once a second; true ends the request (Lost::Why::cancelled).
  std::function<bool()> cancelled;
  // If set, takes the body of a 2xx answer as it comes; false ends the request.
  std::function<bool(std::string_view)> data;
};
Result<Response> perform(Request request, const Callbacks& callbacks = {});

}  // namespace glidepod::http
