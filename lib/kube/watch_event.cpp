#include "lib/kube/watch_event.hpp"

#include "lib/base/json.hpp"

namespace glidepod::kube {

Result<WatchEvent> parse_watch_event(std::string_view line) {
  nlohmann::json json = json_from(line);
  if (!json.is_object()) return error("watch event: not a JSON object");
  if (!member(json, "type").is_string()) return error("watch event: no type");
  if (!member(json, "object").is_object()) return error("watch event: no object");
  WatchEvent event;
  const auto word = text_of(json, "type");
  if (word == "ERROR")
    event.type = WatchEvent::Type::error;
  else if (word == "BOOKMARK")
    event.type = WatchEvent::Type::bookmark;
  else if (word == "DELETED")
    event.type = WatchEvent::Type::deleted;
  else if (word != "ADDED" && word != "MODIFIED")
    return error("watch event: unknown type '{}'", word);
  event.object = std::move(json["object"]);
  event.version = text_of(member(event.object, "metadata"), "resourceVersion");
  return event;
}

}  // namespace glidepod::kube
