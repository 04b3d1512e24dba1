#include "lib/kube/list.hpp"

#include <utility>

#include "lib/base/json.hpp"
#include "lib/http/url.hpp"

namespace glidepod::kube {
namespace {

using Json = nlohmann::json;

// Large enough for a page of pods with very long specifications.
constexpr std::size_t k_longest_page = std::size_t{64} << 20;

struct List {
  Calls& calls;
  ListQuery query;
  ListHandlers handlers;
  bool again = false;  // the list is being read for the second time
};

void next_page(const std::shared_ptr<List>& list, const std::string& from);

// The objects are given one by one: as a tree a page takes ten times its bytes, and what is kept of its
// objects would lie all over that. Those before a mistake in the text have been given.
Json page_without_objects(const std::string& body, const std::function<void(const Json&)>& give) {
  bool in_items = false;
  const auto keep = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth == 1 && event == Json::parse_event_t::key)
      in_items = parsed.get_ref<const std::string&>() == "items";
    if (depth != 2 || event != Json::parse_event_t::object_end || !in_items) return true;
    give(parsed);
    return false;
  };
  return Json::parse(body, keep, false);
}

void take_page(const std::shared_ptr<List>& list, const std::string& body) {
  std::string version, more;
  {
    const auto page = page_without_objects(body, list->handlers.object);
    const Json& items = member(page, "items");
    if (!items.is_array()) return list->handlers.done(error("the answer is no list"));
    for (const auto& item : items) list->handlers.object(item);
    const Json& metadata = member(page, "metadata");
    version = text_of(metadata, "resourceVersion");
    more = text_of(metadata, "continue");
  }
  if (!more.empty()) return next_page(list, more);
  list->handlers.done(std::move(version));
}

void next_page(const std::shared_ptr<List>& list, const std::string& from) {
  if (from.empty()) list->handlers.begin();
  auto path = fmt::format("{}?limit={}", list->query.path, list->query.page);
  if (!list->query.selector.empty()) path += "&" + list->query.selector;
  if (!from.empty()) path += "&continue=" + http::url_encoded(from);
  list->calls.call({.path = std::move(path), .longest_answer = k_longest_page},
                   [list](const Result<std::string>& answer) {
                     if (answer) return take_page(list, answer.value());
                     // The server keeps the rest of a list only for some minutes.
                     if (Failure::of(answer.error()).status == 410 && !std::exchange(list->again, true))
                       return next_page(list, {});
                     list->handlers.done(answer.error());
                   });
}

}  // namespace

void read_list(Calls& calls, ListQuery query, ListHandlers handlers) {
  next_page(std::make_shared<List>(List{calls, std::move(query), std::move(handlers)}), {});
}

}  // namespace glidepod::kube
