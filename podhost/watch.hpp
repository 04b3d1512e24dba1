#pragma once

#include <optional>
#include <string>

#include "lib/kube/selector.hpp"
#include "podhost/http_server.hpp"
#include "podhost/store.hpp"

namespace glidepod::podhost {

// Which pods a list or watch is about.
struct Selection {
  std::string ns;  // empty: all
  kube::LabelSelector labels;
  kube::FieldSelector fields;
  bool matches(const Json& pod) const;
};

// An event as a watcher with this selection sees it: a pod that comes to match is ADDED to it, one that no
// longer does is DELETED. Empty if it does not concern the watcher. Pure.
std::string watch_line(const Event& event, const Selection& selection);

struct WatchRequest {
  Selection selection;
  std::int64_t after = 0;       // the version the client has seen
  std::vector<PodPtr> initial;  // sent as ADDED first
  Milliseconds limit{0};
  bool bookmarks = false;
};

// Answers with the stream of events.
kube::Outcome<bool> start_watch(Store& store, const Connection& connection, WatchRequest request,
                                httplib::Response& response);

}  // namespace glidepod::podhost
