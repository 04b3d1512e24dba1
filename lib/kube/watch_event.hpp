#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "lib/base/result.hpp"

namespace glidepod::kube {

// One line of a watch.
struct WatchEvent {  // NOLINT(bugprone-exception-escape): a move of json checks itself, and that could throw
  enum class Type : std::uint8_t { changed, deleted, bookmark, error };
  Type type = Type::changed;
  nlohmann::json object;  // a Status if it is an error
  std::string version;    // the object's resourceVersion, if it has one
};
Result<WatchEvent> parse_watch_event(std::string_view line);

}  // namespace glidepod::kube
