#pragma once

#include <optional>
#include <string>

#include "lib/http/server.hpp"
#include "lib/kube/selector.hpp"
#include "podhost/store/store.hpp"

namespace glidepod::podhost {

// Which pods a list or watch is about.
struct Selection {
  std::string name_space;  // empty: all
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
  bool end_of_initial = false;  // a bookmark marks it
};

// Answers with the stream of events.
Result<void> start_watch(Store& store, const http::Connection& connection, WatchRequest request,
                         httplib::Response& response);

}  // namespace glidepod::podhost
