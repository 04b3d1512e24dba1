#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "lib/http/exchange.hpp"
#include "lib/kube/failure.hpp"
#include "lib/kube/pod.hpp"

namespace glidepod::kube {

// Where the API is, and what it takes to be let in.
struct Endpoint {
  std::string url;          // "https://10.0.0.1:443", without a slash at its end
  std::string unix_socket;  // if set, the URL's host does not count
  std::string token_file;   // read for every request, since it is replaced now and then; empty: no token
  std::string ca_file;
};

// The API as a pod finds it: FOLDER/api.sock if that exists, else KUBERNETES_SERVICE_HOST and _PORT of the
// environment with FOLDER/token and FOLDER/ca.crt.
Result<Endpoint> endpoint_in_pod(const std::string& folder, const char* const* environment);

// One call of the API, which is repeated if necessary.
struct Call {
  std::string method = "GET";
  std::string path;  // with its query
  std::string body;  // JSON
  std::string content_type = "application/json";
  Milliseconds time_limit{60'000};  // for all attempts
  Milliseconds attempt_limit{15'000};
  http::Plan::Repeat repeat = http::Plan::Repeat::until_deadline;
  std::size_t longest_answer = std::size_t{8} << 20;
  // Checks the answer. If it fails, the call is repeated.
  std::function<Result<void>(const std::string& body)> check;
};
// The body of a 2xx answer, or an Error with a Failure.
using AnswerHandler = std::function<void(Result<std::string>)>;

struct PodName {
  std::string name_space;
  std::string name;
};

using PodHandler = std::function<void(Result<Pod>)>;

// Makes requests to the Kubernetes API on a Loop. Each request is repeated, with growing, random pauses,
// until it succeeds, fails for good, or its time is over. Then the handler is called: once, and never from
// inside the call that started the request.
class Client {
 public:
  using Operation = http::Operation;
  using Observer = std::function<void(const std::string& method, int status, std::chrono::duration<double>)>;

  static Result<std::unique_ptr<Client>> create(Loop& loop, Endpoint endpoint);

  std::unique_ptr<http::Exchange> call(Call call, AnswerHandler handler);

  std::unique_ptr<Operation> get(const PodName& pod, SteadyTime deadline, PodHandler handler);
  // Changes an image. Fails with 422 if the present image is not the one that the change begins with, or if
  // the new one is no image name.
  std::unique_ptr<Operation> patch_image(const PodName& pod, const ImageChange& change, SteadyTime deadline,
                                         PodHandler handler);
  // Resizes containers by the pod's subresource resize. If the API does not serve or allow that, rejected()
  // of the Failure is true. The answer only says that the resize is wanted; the pod's status tells when it is
  // done.
  std::unique_ptr<Operation> resize(const PodName& pod, std::vector<SizeChange> changes, SteadyTime deadline,
                                    PodHandler handler);
  // Writes one annotation of the pod and nothing else.
  std::unique_ptr<Operation> annotate(const PodName& pod, std::string_view key, std::string_view value,
                                      SteadyTime deadline, PodHandler handler);
  // Has the kubelet end the pod now, with phase Failed and reason DeadlineExceeded. For this it sets
  // activeDeadlineSeconds, which an update of a running pod may change.
  std::unique_ptr<Operation> fail_pod(const PodName& pod, SteadyTime deadline, PodHandler handler);

  struct WatchHandlers {
    std::function<void(const Pod&)> changed;
    std::function<void()> deleted;
    std::function<void(const Failure&)> failing;  // the watch goes on trying
  };
  // Tells every change after resource_version until it is destroyed; empty: tells the present state first. It
  // goes on through closed streams, expired versions and dead connections. After a silence the pod is read,
  // and if the stream has not told what that shows, the stream is replaced. The silence grows from the given
  // length up to 30 s.
  std::unique_ptr<Operation> watch(const PodName& pod, std::string resource_version, WatchHandlers handlers,
                                   Milliseconds silence = Milliseconds(5'000));

  // The observer is called after every attempt of call(). Status 0 means that there was no whole answer.
  void observe(Observer observer) { observer_ = std::move(observer); }
  // The request for one attempt, with the present token; for streams.
  http::Request request(std::string method, const std::string& path) const;
  http::Transport& transport() { return *transport_; }
  Loop& loop() { return transport_->loop(); }

 private:
  Client(Endpoint endpoint, std::unique_ptr<http::Transport> transport)
      : endpoint_(std::move(endpoint)), transport_(std::move(transport)) {}
  class Resize;
  std::unique_ptr<Operation> pod_call(Call call, SteadyTime deadline, PodHandler handler);

  Endpoint endpoint_;
  std::unique_ptr<http::Transport> transport_;
  Observer observer_;
};

// The Failure of an answer other than 2xx, with the words of its Status object; nothing for a 2xx.
std::optional<Failure> failure_in(const http::Response& response);

}  // namespace glidepod::kube
