#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "lib/kube/calls.hpp"

namespace glidepod::kube {

struct ListQuery {
  std::string path;      // of the collection
  std::string selector;  // "labelSelector=...", encoded; may be empty
  int page = 250;        // objects
};
struct ListHandlers {
  std::function<void()> begin;  // called again if the list has to be read again from its beginning
  std::function<void(const nlohmann::json& object)> object;
  std::function<void(Result<std::string> version)> done;  // the list's resourceVersion, once
};

// Reads a collection page by page, so that no answer is endless. Destroying the Calls ends this.
void read_list(Calls& calls, ListQuery query, ListHandlers handlers);

}  // namespace glidepod::kube
