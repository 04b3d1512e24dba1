#pragma once

#include <optional>
#include <string>

#include "lib/http/server.hpp"
#include "podhost/store/log_file.hpp"
#include "podhost/store/store.hpp"

namespace glidepod::podhost {

struct LogRequest {
  std::string container;  // may be empty where the pod has only one
  bool follow = false;
  bool previous = false;
  LogOptions options;
};

// Answers with a container's log; following, it ends when the container does. Nothing if the answer is under
// way.
Result<void> stream_log(Store& store, const PodFiles& files, const http::Connection& connection,
                        const Json& pod, const LogRequest& request, httplib::Response& response);

}  // namespace glidepod::podhost
