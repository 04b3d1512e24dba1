#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "lib/base/loop.hpp"
#include "lib/base/result.hpp"
#include "lib/http/request.hpp"

namespace glidepod::http {

// Why a request failed: the fact in the Errors of this library's clients.
struct Failure {
  enum class Kind : std::uint8_t {
    transport,  // no whole answer: unreachable, timed out, cut off
    status,     // the server answered with an error
    nonsense,   // its answer cannot be understood
  };
  Kind kind = Kind::transport;
  int status = 0;       // the HTTP status
  std::string reason;   // the server's word for it, "Forbidden", if there was one
  std::string message;  // the server's message, or what went wrong
  std::optional<std::chrono::seconds> retry_after;
  // Whether earlier attempts of the same request may have had an effect. The answer tells this only for the
  // last attempt.
  enum class Effect : std::uint8_t { none, unknown };
  Effect earlier = Effect::none;
  Lost lost;  // set for the kind `transport`

  // Whether the same request may succeed later.
  bool retriable() const;
  // Whether neither this attempt nor an earlier one can have had an effect.
  bool rejected() const;
  // One line: "403 Forbidden: pods "x" is forbidden: ...".
  std::string to_string() const;
  // to_string() with this as its fact.
  Error to_error() const;
  // The Failure of an Error; an Error without one becomes a Failure without an answer.
  static Failure of(const Error& error);
};

// The pause before the next attempt; the first attempt is number 1. It doubles from 100 ms up to 10 s, is
// multiplied by 0.5 to 1 according to random (0 to 1), and is never shorter than the server asked for.
Milliseconds backoff(int attempt, double random, const Failure& failure);

}  // namespace glidepod::http
