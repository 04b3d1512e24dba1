#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "lib/http/failure.hpp"
#include "lib/http/transport.hpp"
#include "lib/http/url.hpp"

namespace glidepod::http {

// A request and how far to go for its answer.
struct Plan {
  // Asked before each attempt: a token may have been replaced meanwhile.
  std::function<Request()> request;
  SteadyTime deadline;
  Milliseconds attempt_limit{15'000};
  enum class Repeat : std::uint8_t { until_deadline, never };
  Repeat repeat = Repeat::until_deadline;
  // Why this is not the answer, or nothing if it is one. Without it, 2xx is an answer.
  std::function<std::optional<Failure>(const Response&)> judge;
  // Failures that are not worth another attempt though they are retriable().
  std::function<bool(const Failure&)> hopeless;
  // Redirects are followed so often, to where this does not object. Attempts begin at the first URL.
  int redirects = 0;
  std::function<Result<void>(const Url& next)> may_follow;
  // Told of each attempt: the HTTP status, 0 if there was no whole answer, and how long it took.
  std::function<void(const std::string& method, int status, std::chrono::duration<double> took)> attempted;
};

// One request with its repetitions, with growing, random pauses: this is the only place that repeats any.
class Exchange : public Operation {
 public:
  // Called once, from the Loop: the answer, or an Error with a Failure (none where a redirect was refused).
  // url is where it came from.
  using Done = std::function<void(Result<Response>, const std::string& url)>;

  // The transport must outlive it.
  Exchange(Transport& transport, Plan plan, Done done);
  ~Exchange() override;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Repeats nothing any more: the attempt under way is the last, and one that is waited for is not made.
  void wind_up();

 private:
  void attempt();
  void send(Request request);
  void answered(Result<Response> response);
  Result<bool> redirected(const Response& response);
  void failed(Failure failure);
  void finish(Result<Response> result);

  Transport& transport_;
  Plan plan_;
  Done done_;
  int attempts_ = 0, redirects_ = 0;
  bool winding_up_ = false;
  std::string method_, url_;
  Request sent_;  // for a redirect: the same again, elsewhere
  SteadyTime began_;
  Failure::Effect earlier_ = Failure::Effect::none;
  Failure last_;
  Loop::TimerId timer_ = 0;
  std::unique_ptr<Operation> call_;
};

}  // namespace glidepod::http
