#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace glidepod {

// Why something failed: an errno (0 where the system was not asked) and what was being done, outermost first:
// "switch payload-0: patch pod pilot-1: connection refused".
class Error {
 public:
  explicit Error(std::string context, int code = 0) : code_(code), context_(std::move(context)) {}

  // The error of the system call that just failed; reads errno.
  template <typename... Args>
  static Error system(fmt::format_string<Args...> format, Args&&... args) {
    const int code = errno;
    return Error(fmt::format(format, std::forward<Args>(args)...), code);
  }

  int code() const { return code_; }
  // One line: the context, then the system's words for the code if there is one.
  std::string message() const;
  // The same error with "outer: " put before its context.
  Error in(std::string_view outer) const;

 private:
  int code_;
  std::string context_;
};

template <typename... Args>
Error error(fmt::format_string<Args...> format, Args&&... args) {
  return Error(fmt::format(format, std::forward<Args>(args)...));
}

// A T or the Error that prevented it.
template <typename T = void>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // Calling the wrong one of these is a bug and ends the program.
  T& value() & { return *std::get_if<0>(&state_); }
  const T& value() const& { return *std::get_if<0>(&state_); }
  T&& value() && { return std::move(*std::get_if<0>(&state_)); }
  const Error& error() const { return *std::get_if<1>(&state_); }

  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }
  T&& operator*() && { return std::move(*this).value(); }

  Result in(std::string_view outer) && { return ok() ? std::move(*this) : Result(error().in(outer)); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  void value() const {}
  const Error& error() const { return *error_; }

  Result in(std::string_view outer) && { return ok() ? std::move(*this) : Result(error().in(outer)); }

 private:
  std::optional<Error> error_;
};

}  // namespace glidepod

// The value of a Result, or return its Error from this function. A statement expression, as g++ and clang
// have it; the counter lets one TRY stand inside another.
#define TRY(expression) GLIDEPOD_TRY(expression, __COUNTER__)
#define GLIDEPOD_TRY(expression, n) GLIDEPOD_TRY_NAMED(expression, n)
#define GLIDEPOD_TRY_NAMED(expression, n)                    \
  __extension__({                                            \
    auto try_result_##n = (expression);                      \
    if (!try_result_##n.ok()) return try_result_##n.error(); \
    std::move(try_result_##n).value();                       \
  })
