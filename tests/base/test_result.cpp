#include "lib/base/result.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <memory>

#include "lib/base/child.hpp"
#include "lib/base/file.hpp"

using namespace glidepod;

namespace {
Result<int> half(int number) {
  if (number % 2 != 0) return error("{} is odd", number);
  return number / 2;
}
Result<int> quarter(int number) {
  return TRY(half(TRY(half(number))));
}
Result<std::unique_ptr<int>> boxed(int number) {
  return std::make_unique<int>(TRY(half(number)));
}

struct Death {
  ExitStatus status;
  std::string words;
};
Death death_of(const std::function<void()>& body) {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  const Fd reader(ends[0]);
  Fd writer(ends[1]);
  auto child = Child::fork([&] {
    ::signal(SIGABRT, SIG_DFL);  // doctest's own would tell of it
    ::dup2(writer.get(), STDERR_FILENO);
    body();
    return 0;
  });
  writer.reset();
  const auto words = read_all(reader, "pipe", 4096).value();
  return {child.value().wait().value().status, words};
}
}  // namespace

TEST_CASE("result: TRY hands on the value or returns the error") {
  CHECK(quarter(12).value() == 3);
  CHECK(quarter(6).error().message() == "3 is odd");
  CHECK(*boxed(4).value() == 2);
}

TEST_CASE("result: context is outermost first, the system's words last") {
  errno = ENOENT;
  const Error inner = Error::system("open {}", "/x");
  CHECK(inner.in("read config").message() == "read config: open /x: No such file or directory");
  CHECK(inner.in("a").code() == ENOENT);
  CHECK(Result<void>(inner).in("b").error().message().starts_with("b: open"));
}

TEST_CASE("result: the value of a failure and the error of a success end the program, with a word") {
  const Result<int> failure = error("no number");
  const Result<int> success = 1;
  const Result<void> done;
  const Result<void> not_done = error("not done");
  for (const auto& body : std::vector<std::function<void()>>{
           [&] { (void)failure.value(); }, [&] { (void)*failure; }, [&] { (void)success.error(); },
           [&] { (void)done.error(); }, [&] { not_done.value(); }})
    CHECK(death_of(body).status.number == SIGABRT);
  CHECK(death_of([&] { (void)failure.value(); }).words ==
        "bug: the value of a failure was asked for: no number\n");
  CHECK(death_of([&] { (void)success.error(); }).words == "bug: the error of a success was asked for\n");
}

TEST_CASE("result: an error keeps its fact through contexts, and only of its own type") {
  struct Status {
    int code;
  };
  const Error plain = error("refused");
  CHECK(plain.fact<Status>() == nullptr);
  const Error outer = plain.with(Status{403}).in("patch");
  REQUIRE(outer.fact<Status>() != nullptr);
  CHECK(outer.fact<Status>()->code == 403);
  CHECK(outer.fact<int>() == nullptr);
  CHECK(outer.message() == "patch: refused");
}
