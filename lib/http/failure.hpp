#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "lib/base/loop.hpp"
#include "lib/base/result.hpp"
#include "lib/http/request.hpp"

namespace glidepod::http {

// Why a request did not give what was asked: the fact in the Errors of this library's clients.
struct Failure {
  enum class Kind : std::uint8_t {
    transport,  // no whole answer: unreachable, timed out, cut off
    status,     // the server answered with an error
    nonsense,   // its answer cannot be understood
  };
  Kind kind = Kind::transport;
  int status = 0;       // the HTTP status
  std::string reason;   // the server's word for it, "Forbidden", if there was one
  std::string message;  // its message, or what went wrong
  std::optional<std::chrono::seconds> retry_after;
  // What earlier attempts of the same request may have done: this answer speaks for the last one only.
  enum class Effect : std::uint8_t { none, unknown };
  Effect earlier = Effect::none;
  Lost lost;  // of kind transport

  // The same request may succeed later.
  bool retriable() const;
  // Neither this attempt nor an earlier one can have had an effect.
  bool rejected() const;
  // One line: "403 Forbidden: pods "x" is forbidden: ...".
  std::string to_string() const;
  // to_string() with this as its fact.
  Error to_error() const;
  // The fact of an Error; of one without, that there was no answer.
  static Failure of(const Error& error);
};

// How long to wait before the next attempt, the first being number 1: twice as long each time from 100 ms to
// 10 s, times 0.5 to 1 by random (0 to 1), never shorter than what the server asked for.
Milliseconds backoff(int attempt, double random, const Failure& failure);

}  // namespace glidepod::http
