#include "lib/kube/watch_event.hpp"

#include "lib/base/json.hpp"

namespace glidepod::kube {

Result<WatchEvent> parse_watch_event(std::string_view line) {
  nlohmann::json json = json_from(line);
  if (!json.is_object()) return error("watch event: not a JSON object");
  const auto type = json.find("type"), object = json.find("object");
  if (type == json.end() || !type->is_string()) return error("watch event: no type");
  if (object == json.end() || !object->is_object()) return error("watch event: no object");
  WatchEvent event;
  const auto& word = type->get_ref<const std::string&>();
  if (word == "ERROR")
    event.type = WatchEvent::Type::error;
  else if (word == "BOOKMARK")
    event.type = WatchEvent::Type::bookmark;
  else if (word == "DELETED")
    event.type = WatchEvent::Type::deleted;
  else if (word != "ADDED" && word != "MODIFIED")
    return error("watch event: unknown type '{}'", word);
  const auto metadata = object->find("metadata");
  if (metadata != object->end() && metadata->is_object()) {
    const auto version = metadata->find("resourceVersion");
    if (version != metadata->end() && version->is_string()) event.version = version->get<std::string>();
  }
  event.object = std::move(*object);
  return event;
}

}  // namespace glidepod::kube
