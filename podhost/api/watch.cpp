#include "podhost/api/watch.hpp"

#include <httplib.h>
#include <sys/eventfd.h>

#include "lib/base/json.hpp"

namespace glidepod::podhost {
namespace {

constexpr Milliseconds k_bookmark_every{60000};

std::string line(const char* type, const Json& object) {
  const Json event = {{"type", type}, {"object", object}};
  return json_text(event) + "\n";
}

std::string bookmark(std::int64_t version, const Json& annotations = {}) {
  Json metadata = {{"resourceVersion", std::to_string(version)}, {"creationTimestamp", nullptr}};
  if (!annotations.is_null()) metadata["annotations"] = annotations;
  return line("BOOKMARK", {{"kind", "Pod"},
                           {"apiVersion", "v1"},
                           {"metadata", std::move(metadata)},
                           {"spec", {{"containers", nullptr}}},
                           {"status", Json::object()}});
}

// Writes events until the time is up or the client has gone.
void stream(Store& store, const http::Connection& connection, const WatchRequest& request,
            const Store::Subscription& news, httplib::DataSink& sink) {
  const auto send = [&](const std::string& text) {
    return text.empty() || sink.write(text.data(), text.size());
  };
  for (const auto& pod : request.initial) {
    if (!send(line("ADDED", *pod))) return;
  }
  std::int64_t seen = request.after;
  if (request.end_of_initial && !send(bookmark(seen, {{"k8s.io/initial-events-end", "true"}}))) return;
  const SteadyTime end = std::chrono::steady_clock::now() + request.limit;
  SteadyTime next_bookmark = std::chrono::steady_clock::now() + k_bookmark_every;
  while (true) {
    eventfd_t count = 0;
    eventfd_read(news.fd(), &count);  // before the look: a change after it makes it readable again
    const auto events = store.since(seen);
    if (!events) {
      send(line("ERROR",
                kube::ApiError::of(kube::ApiError::gone(fmt::format("too old resource version: {}", seen)))
                    .to_json()));
      return;
    }
    for (const auto& event : *events) {
      if (!send(watch_line(event, request.selection))) return;
      seen = event.version;
    }
    const SteadyTime now = std::chrono::steady_clock::now();
    if (now >= end) {
      if (request.bookmarks) send(bookmark(seen));
      return;
    }
    if (request.bookmarks && now >= next_bookmark) {
      if (!send(bookmark(seen))) return;
      next_bookmark = now + k_bookmark_every;
    }
    const SteadyTime wake = request.bookmarks ? std::min(end, next_bookmark) : end;
    if (!connection.wait(news.fd(), std::chrono::ceil<Milliseconds>(wake - now))) return;
  }
}

}  // namespace

bool Selection::matches(const Json& pod) const {
  const Json& metadata = pod.at("metadata");
  return (name_space.empty() || metadata.at("namespace") == name_space) &&
         labels.matches(metadata.value("labels", Json())) && fields.matches(pod);
}

std::string watch_line(const Event& event, const Selection& selection) {
  const bool now = event.type != Event::Type::deleted && selection.matches(*event.pod);
  const bool before = event.previous && selection.matches(*event.previous);
  if (now) return line(before ? "MODIFIED" : "ADDED", *event.pod);
  return before ? line("DELETED", *event.pod) : "";
}

Result<void> start_watch(Store& store, const http::Connection& connection, WatchRequest request,
                         httplib::Response& response) {
  auto subscription = store.subscribe();
  if (!subscription) return subscription.error();
  std::shared_ptr<Store::Subscription> news = std::move(subscription).value();
  response.status = 200;
  response.set_chunked_content_provider(
      "application/json",
      [&store, &connection, request = std::move(request), news](std::size_t, httplib::DataSink& sink) {
        stream(store, connection, request, *news, sink);
        sink.done();
        return true;
      });
  return {};
}

}  // namespace glidepod::podhost
