#include "lib/http/failure.hpp"

#include <algorithm>

#include "lib/base/text.hpp"

namespace glidepod::http {

bool Failure::retriable() const {
  if (kind != Kind::status) return true;
  return status == 408 || status == 409 || status == 429 || status >= 500;
}

bool Failure::rejected() const {
  if (earlier == Effect::unknown) return false;
  if (kind == Kind::transport) return !lost.sent;
  // After a gateway's 408 or any 5xx the request may have had an effect: the store's answer may be lost, or a
  // webhook after it may have failed. With any other 4xx, also 429, the request was refused before it had
  // one.
  return kind == Kind::status && status >= 400 && status < 500 && status != 408;
}

std::string Failure::to_string() const {
  if (kind == Kind::transport) return "no answer from the API: " + one_line(message);
  if (kind == Kind::nonsense) return "unintelligible answer from the API: " + one_line(message);
  return fmt::format("{}{}{}: {}", status, reason.empty() ? "" : " ", reason, one_line(message));
}

Error Failure::to_error() const {
  return Error(to_string()).with(*this);
}

Failure Failure::of(const Error& error) {
  if (const auto* failure = error.fact<Failure>()) return *failure;
  Failure failure{.message = error.message()};
  if (const auto* lost = error.fact<Lost>()) failure.lost = *lost;
  return failure;
}

Milliseconds backoff(int attempt, double random, const Failure& failure) {
  const auto longest = Milliseconds(std::min(100 << std::min(attempt - 1, 10), 10'000));
  const auto wait =
      Milliseconds(static_cast<std::int64_t>(static_cast<double>(longest.count()) * (0.5 + random / 2)));
  return failure.retry_after ? std::max<Milliseconds>(wait, *failure.retry_after) : wait;
}

}  // namespace glidepod::http
