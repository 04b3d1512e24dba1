#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <variant>

#include "lib/kube/client.hpp"
#include "provisioner/api_counts.hpp"

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

// The text as part of a query.
std::string url_encoded(std::string_view text);

// Calls of the API, many at a time. Destroying it cancels those under way, and no handler is called any more;
// the client and the counts must outlive it.
class ApiCaller {
 public:
  explicit ApiCaller(kube::Client& client, ApiCounts* counts = nullptr);
  ApiCaller(const ApiCaller&) = delete;
  ApiCaller& operator=(const ApiCaller&) = delete;
  ~ApiCaller();

  // The handler is called once, from the loop.
  void call(ApiCall call, std::function<void(ApiAnswer)> handler);
  // Calls the function from the loop, unless this is destroyed before.
  void later(std::function<void()> function);
  // Nothing is repeated any more: calls that wait for their next attempt fail, those under way are the last.
  void wind_up();

 private:
  class Request;
  void finish(std::uint64_t id, ApiAnswer answer);

  kube::Client& client_;
  ApiCounts* counts_;
  bool winding_up_ = false;
  std::uint64_t last_id_ = 0;
  std::set<Loop::TimerId> later_;
  std::map<std::uint64_t, std::unique_ptr<Request>> requests_;
};

}  // namespace glidepod::provisioner
