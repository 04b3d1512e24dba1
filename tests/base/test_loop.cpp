#include "lib/base/loop.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "lib/base/child.hpp"

using namespace glidepod;

TEST_CASE("loop: descriptors, timers in order, and handlers that remove themselves") {
  auto loop = Loop::create().value();
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const Fd read_end(ends[0]), write_end(ends[1]);
  std::string seen;
  REQUIRE(loop.watch(read_end.get(), EPOLLIN,
                     [&](std::uint32_t) {
                       seen += 'r';
                       loop.forget(read_end.get());
                     })
              .ok());
  loop.after(Milliseconds(2), [&] {
    seen += '2';
    loop.stop();
  });
  loop.after(Milliseconds(1), [&] { seen += '1'; });
  const auto cancelled = loop.after(Milliseconds(0), [&] { seen += 'x'; });
  loop.cancel(cancelled);
  REQUIRE(::write(write_end.get(), "a", 1) == 1);
  REQUIRE(loop.run().ok());
  CHECK(seen == "r12");
}

TEST_CASE("loop: signals without end leave room for the rest") {
  auto loop = Loop::create().value();
  int raised = 0;
  REQUIRE(loop.on_signals({SIGUSR2},
                          [&](const signalfd_siginfo&) {
                            if (++raised < 1000) ::raise(SIGUSR2);
                          })
              .ok());
  bool timer = false;
  loop.after(Milliseconds(0), [&] { timer = true; });
  ::raise(SIGUSR2);
  REQUIRE(loop.run_once(Milliseconds(100)).ok());
  CHECK(timer);
  CHECK(raised < 1000);
  while (raised < 1000) REQUIRE(loop.run_once(Milliseconds(100)).ok());
}

TEST_CASE("loop: a handler that does not return ends the process, waiting does not") {
  const auto ends = [](bool stuck) {
    auto child = Child::fork([stuck] {
      auto loop = Loop::create().value();
      loop.end_if_stuck_for(Milliseconds(30));
      loop.after(Milliseconds(0), [stuck] {
        if (stuck) ::pause();  // SIGALRM ends it
      });
      for (int i = 0; i < 4; ++i) (void)loop.run_once(Milliseconds(20));
      return 7;
    });
    REQUIRE(child.ok());
    return child->wait().value().status;
  };
  CHECK(ends(true) == ExitStatus::signaled(SIGALRM));
  CHECK(ends(false) == ExitStatus::exited(7));
}

TEST_CASE("loop: signals arrive as data") {
  sigset_t old;
  ::sigprocmask(SIG_SETMASK, nullptr, &old);
  auto loop = Loop::create().value();
  int got = 0;
  REQUIRE(loop.on_signals({SIGUSR1},
                          [&](const signalfd_siginfo& info) {
                            got = static_cast<int>(info.ssi_signo);
                            loop.stop();
                          })
              .ok());
  ::raise(SIGUSR1);
  REQUIRE(loop.run().ok());
  CHECK(got == SIGUSR1);
  ::sigprocmask(SIG_SETMASK, &old, nullptr);
}
