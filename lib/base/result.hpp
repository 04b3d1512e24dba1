#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <variant>

namespace glidepod {

// Why something failed: an errno (0 if no system call failed) and what was being done, the outermost first,
// as in "switch payload-0: patch pod pilot-1: connection refused". It may carry one fact, such as an HTTP
// status or whose fault it is, for code that decides by it.
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

  // The same error with this fact, which replaces an earlier one.
  template <typename Fact>
  Error with(Fact fact) const {
    Error result = *this;
    result.fact_ = std::make_shared<const Fact>(std::move(fact));
    result.type_ = &typeid(Fact);
    return result;
  }
  // The fact if it is of this type, else nullptr. It lives as long as the error or a copy of it.
  template <typename Fact>
  const Fact* fact() const {
    return type_ && *type_ == typeid(Fact) ? static_cast<const Fact*>(fact_.get()) : nullptr;
  }

 private:
  int code_;
  std::string context_;
  std::shared_ptr<const void> fact_;
  const std::type_info* type_ = nullptr;
};

template <typename... Args>
Error error(fmt::format_string<Args...> format, Args&&... args) {
  return Error(fmt::format(format, std::forward<Args>(args)...));
}

// Ends the program. Its message on stderr says whether a value or an error was asked for that does not exist.
[[noreturn]] void no_such_result(const Error* present);

// A T, or the Error that prevented it.
template <typename T = void>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // Calling the wrong one of these is a bug and ends the program.
  T& value() & { return *checked(std::get_if<0>(&state_)); }
  const T& value() const& { return *checked(std::get_if<0>(&state_)); }
  T&& value() && { return std::move(*checked(std::get_if<0>(&state_))); }
  const Error& error() const { return *checked(std::get_if<1>(&state_)); }

  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }

  Result in(std::string_view outer) && { return ok() ? std::move(*this) : Result(error().in(outer)); }

 private:
  template <typename Part>
  Part* checked(Part* part) const {
    if (!part) [[unlikely]]
      no_such_result(std::get_if<1>(&state_));
    return part;
  }
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}

  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  void value() const {
    if (error_) [[unlikely]]
      no_such_result(&*error_);
  }
  const Error& error() const {
    if (!error_) [[unlikely]]
      no_such_result(nullptr);
    return *error_;
  }

  Result in(std::string_view outer) && { return ok() ? std::move(*this) : Result(error().in(outer)); }

 private:
  std::optional<Error> error_;
};

}  // namespace glidepod

// Gives the value of a Result, or returns its Error from the function around it. It is a statement
// expression, which g++ and clang have. The counter lets one TRY stand inside another. In a braced list it
// may only be the first element (tests/lint/includes): where it returns, g++ 12 and clang 14 leak those
// before it.
#define TRY(expression) GLIDEPOD_TRY(expression, __COUNTER__)
#define GLIDEPOD_TRY(expression, n) GLIDEPOD_TRY_NAMED(expression, n)
#define GLIDEPOD_TRY_NAMED(expression, n)                    \
  __extension__({                                            \
    auto try_result_##n = (expression);                      \
    if (!try_result_##n.ok()) return try_result_##n.error(); \
    std::move(try_result_##n).value();                       \
  })
