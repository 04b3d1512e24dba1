#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "lib/http/failure.hpp"
#include "lib/http/transport.hpp"
#include "lib/http/url.hpp"

namespace glidepod::http {

// A request, and what may be done to get its answer.
struct Plan {
  // Called before each attempt, since a token may have been replaced meanwhile.
  std::function<Request()> request;
  SteadyTime deadline;
  Milliseconds attempt_limit{15'000};
  enum class Repeat : std::uint8_t { until_deadline, never };
  Repeat repeat = Repeat::until_deadline;
  // Judges an answer: gives the Failure, or nothing if the answer is good. Without it every 2xx is good.
  std::function<std::optional<Failure>(const Response&)> judge;
  // If set, takes the body of a 200 answer as it comes. After request() was called again it comes anew.
  std::function<void(std::string_view)> data = {};
  // Whether the request is not tried again after this failure, though it is retriable().
  std::function<bool(const Failure&)> hopeless;
  // The number of redirects that are followed, and a check of where they lead. Each attempt begins at the
  // first URL.
  int redirects = 0;
  std::function<Result<void>(const Url& next)> may_follow;
  // Called after each attempt with the HTTP status and the time that the attempt took. Status 0 means that
  // there was no whole answer.
  std::function<void(const std::string& method, int status, std::chrono::duration<double> took)> attempted;
};

// One request, which is repeated after growing, random pauses. This is the only place that repeats requests.
class Exchange : public Operation {
 public:
  // Called once, from the Loop, with the answer or an Error. The Error has a Failure as its fact, unless a
  // redirect was refused. url: where the answer came from.
  using Done = std::function<void(Result<Response>, const std::string& url)>;

  // The transport must outlive it.
  Exchange(Transport& transport, Plan plan, Done done);
  ~Exchange() override;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Stops repeating. The attempt under way is the last one; a planned attempt is not made.
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
  Request sent_;  // kept for redirects, which send the same request elsewhere
  SteadyTime began_;
  Failure::Effect earlier_ = Failure::Effect::none;
  Failure last_;
  Loop::TimerId timer_ = 0;
  std::unique_ptr<Operation> call_;
};

}  // namespace glidepod::http
