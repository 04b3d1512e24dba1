#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <variant>

#include "lib/kube/client.hpp"

namespace glidepod::provisioner {

// One request to the Kubernetes API.
struct ApiCall {
  std::string method = "GET";
  std::string path;
  std::string body;  // JSON
  Milliseconds time_limit{60'000};
};

// The body of the answer, or why there is none after repetitions with growing pauses.
using ApiAnswer = std::variant<std::string, kube::Failure>;

// Calls of the API, many at a time. Destroying it cancels those under way, and no handler is called any more;
// the client must outlive it.
class ApiCaller {
 public:
  explicit ApiCaller(kube::Client& client);
  ApiCaller(const ApiCaller&) = delete;
  ApiCaller& operator=(const ApiCaller&) = delete;
  ~ApiCaller();

  // The handler is called once, from the loop.
  void call(ApiCall call, std::function<void(ApiAnswer)> handler);
  Loop& loop() { return client_.loop(); }

 private:
  class Request;
  void finish(std::uint64_t id, ApiAnswer answer);

  kube::Client& client_;
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, std::unique_ptr<Request>> requests_;
};

}  // namespace glidepod::provisioner
