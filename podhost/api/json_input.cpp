#include "podhost/api/json_input.hpp"

#include "lib/base/text.hpp"

namespace glidepod::podhost {
namespace {

using Json = nlohmann::json;
using Pointer = Json::json_pointer;

constexpr int k_deepest = 64;

// All of these throw what nlohmann's checked access throws where there is no such place.
void add(Json& document, const Pointer& path, Json value) {
  if (path.empty()) {
    document = std::move(value);
    return;
  }
  Json& parent = document.at(path.parent_pointer());
  const std::string& last = path.back();
  if (parent.is_object()) {
    parent[last] = std::move(value);
    return;
  }
  if (!parent.is_array())
    throw std::invalid_argument("parent of " + path.to_string() + " is no object or list");
  const auto number = parse_integer(last);
  const std::int64_t index = last == "-" ? static_cast<std::int64_t>(parent.size())
                             : number    ? number.value()
                                         : -1;
  if (index < 0 || static_cast<std::size_t>(index) > parent.size()) {
    throw std::invalid_argument("index out of bounds: " + path.to_string());
  }
  parent.insert(parent.begin() + index, std::move(value));
}

Json take(Json& document, const Pointer& path) {
  Json value = std::move(document.at(path));
  if (path.empty()) return value;
  Json& parent = document.at(path.parent_pointer());
  if (parent.is_object()) {
    parent.erase(path.back());
  } else {
    parent.erase(static_cast<std::size_t>(std::stoul(path.back())));
  }
  return value;
}

void apply(Json& document, const Json& operation) {
  const std::string name = operation.at("op").get<std::string>();
  const Pointer path(operation.at("path").get<std::string>());
  if (name == "add") {
    add(document, path, operation.at("value"));
  } else if (name == "remove") {
    take(document, path);
  } else if (name == "replace") {
    document.at(path) = operation.at("value");
  } else if (name == "move") {
    add(document, path, take(document, Pointer(operation.at("from").get<std::string>())));
  } else if (name == "test") {
    if (document.at(path) != operation.at("value")) {
      throw std::invalid_argument("testing value " + path.to_string() + " failed: test failed");
    }
  } else {
    throw std::invalid_argument("unsupported operation " + name);
  }
}

}  // namespace

Result<Json> parse_json(std::string_view text) {
  bool too_deep = false;
  Json result = Json::parse(
      text,
      [&](int depth, Json::parse_event_t, Json&) {
        too_deep = too_deep || depth > k_deepest;
        return !too_deep;
      },
      false);
  if (too_deep) return error("is nested too deeply");
  if (result.is_discarded()) return error("is not valid JSON");
  return result;
}

Result<Json> apply_json_patch(Json document, const Json& patch) {
  try {
    for (const auto& operation : patch) apply(document, operation);
  } catch (const std::exception& failure) {
    return Error(failure.what());
  }
  return document;
}

}  // namespace glidepod::podhost
