#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "lib/base/loop.hpp"
#include "lib/base/result.hpp"
#include "lib/kube/failure.hpp"
#include "lib/kube/http.hpp"
#include "lib/kube/pod.hpp"

namespace glidepod::kube {

// Where the API is and how to be let in.
struct Endpoint {
  std::string url;          // "https://10.0.0.1:443", without a slash at its end
  std::string unix_socket;  // if set, the URL's host is not looked at
  std::string token_file;   // read for every request, as it is replaced now and then; empty: none
  std::string ca_file;
};

// The API as a pod sees it: FOLDER/api.sock if it exists, else KUBERNETES_SERVICE_HOST and _PORT of the
// environment with FOLDER/token and FOLDER/ca.crt.
Result<Endpoint> endpoint_in_pod(const std::string& folder, const char* const* environment);

struct PodName {
  std::string space;  // the namespace
  std::string name;
};

using PodAnswer = std::variant<Pod, Failure>;
using PodHandler = std::function<void(PodAnswer)>;

// Requests to the Kubernetes API about pods, driven by a Loop. Each is repeated with growing, random pauses
// until it succeeds, fails for good, or the deadline passes; then the handler is called, once, never from
// inside the call that started it.
class Client {
 public:
  // Destroying it cancels the request; its handler is then not called. Handlers may do so.
  class Operation {
   public:
    virtual ~Operation() = default;
  };
  static Result<std::unique_ptr<Client>> create(Loop& loop, Endpoint endpoint);

  std::unique_ptr<Operation> get(const PodName& pod, SteadyTime deadline, PodHandler handler);
  // Changes the image of one container and nothing else.
  std::unique_ptr<Operation> patch_image(const PodName& pod, std::string_view container,
                                         std::string_view image, SteadyTime deadline, PodHandler handler);
  // Has the kubelet end the pod now, with phase Failed and reason DeadlineExceeded: it sets the one field
  // that a pod's own update may change and that does so, activeDeadlineSeconds.
  std::unique_ptr<Operation> fail_pod(const PodName& pod, SteadyTime deadline, PodHandler handler);

  struct WatchHandlers {
    std::function<void(const Pod&)> changed;
    std::function<void()> deleted;
    std::function<void(const Failure&)> failing;  // it goes on trying
  };
  // Tells every change after resource_version (empty: and the present state first) until destroyed, through
  // closed streams and expired versions.
  std::unique_ptr<Operation> watch(const PodName& pod, std::string resource_version, WatchHandlers handlers);

  // For the operations: one attempt.
  HttpRequest request(std::string method, const std::string& path) const;
  Http& http() { return *http_; }
  Loop& loop() { return loop_; }
  double random();

 private:
  Client(Loop& loop, Endpoint endpoint, std::unique_ptr<Http> http);
  Loop& loop_;
  Endpoint endpoint_;
  std::unique_ptr<Http> http_;
  std::uint64_t random_state_;
};

// What an answer means; for the operations and their tests.
std::variant<std::string, Failure> body_of(Result<HttpResponse> response);

}  // namespace glidepod::kube
