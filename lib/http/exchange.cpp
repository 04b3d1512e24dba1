#include "lib/http/exchange.hpp"

#include <algorithm>
#include <utility>

namespace glidepod::http {

Exchange::Exchange(Transport& transport, Plan plan, Done done)
    : transport_(transport), plan_(std::move(plan)), done_(std::move(done)) {
  attempt();
}

Exchange::~Exchange() {
  transport_.loop().cancel(timer_);
}

void Exchange::wind_up() {
  winding_up_ = true;
  if (timer_ == 0) return;
  transport_.loop().cancel(timer_);
  timer_ = transport_.loop().after(Milliseconds(0), [this] { finish(last_.to_error()); });
}

void Exchange::attempt() {
  timer_ = 0;
  redirects_ = 0;
  // A timer may be late by any time, for instance if the process was stopped.
  if (attempts_ > 0 && std::chrono::steady_clock::now() >= plan_.deadline) return finish(last_.to_error());
  ++attempts_;
  Request request = plan_.request();
  request.wanted_headers.emplace_back("Location");
  send(std::move(request));
}

void Exchange::send(Request request) {
  began_ = std::chrono::steady_clock::now();
  const auto left = std::chrono::ceil<Milliseconds>(plan_.deadline - began_);
  request.timeout = std::clamp(left, Milliseconds(1), plan_.attempt_limit);
  if (plan_.redirects > 0) sent_ = request;
  url_ = request.url;
  method_ = request.method;
  call_ = transport_.start(
      std::move(request), {plan_.data, [this](Result<Response> response) { answered(std::move(response)); }});
}

void Exchange::answered(Result<Response> response) {
  if (plan_.attempted)
    plan_.attempted(method_, response ? response->status : 0, std::chrono::steady_clock::now() - began_);
  if (!response) return failed(Failure::of(response.error()));
  const auto elsewhere = redirected(*response);
  if (!elsewhere) return finish(elsewhere.error());
  if (*elsewhere) return;
  std::optional<Failure> failure;
  if (plan_.judge)
    failure = plan_.judge(*response);
  else if (response->status / 100 != 2)
    failure = Failure{Failure::Kind::status, response->status, {}, {}, response->retry_after};
  if (failure) return failed(std::move(*failure));
  finish(std::move(response));
}

// Returns true if the request was sent on to another URL.
Result<bool> Exchange::redirected(const Response& response) {
  const auto location = response.headers.find("Location");
  const bool leads_on = response.status >= 300 && response.status < 400 && response.status != 304;
  if (plan_.redirects == 0 || !leads_on || location == response.headers.end()) return false;
  if (++redirects_ > plan_.redirects) return error("{} redirects too often", url_);
  const Url here = TRY(Url::parse(url_));
  const Url next = TRY(here.resolve(location->second));
  if (plan_.may_follow) TRY(plan_.may_follow(next));
  Request request = std::move(sent_);
  if (!next.same_origin(here)) request.authorization.clear();
  request.url = next.text();
  send(std::move(request));
  return true;
}

void Exchange::failed(Failure failure) {
  failure.earlier = earlier_;
  if (!failure.rejected()) earlier_ = Failure::Effect::unknown;
  // The token may have been replaced after we read it and before the server did.
  const bool expired_token = failure.status == 401 && attempts_ == 1;
  const bool again = failure.retriable() ? !plan_.hopeless || !plan_.hopeless(failure) : expired_token;
  const Milliseconds wait = backoff(attempts_, transport_.random(), failure);
  const bool in_time = std::chrono::steady_clock::now() + wait < plan_.deadline;
  if (!again || !in_time || winding_up_ || plan_.repeat == Plan::Repeat::never)
    return finish(failure.to_error());
  last_ = std::move(failure);
  timer_ = transport_.loop().after(wait, [this] { attempt(); });
}

void Exchange::finish(Result<Response> result) {
  timer_ = 0;
  const auto done = std::move(done_);
  const auto url = std::move(url_);
  done(std::move(result), url);  // may destroy this
}

}  // namespace glidepod::http
