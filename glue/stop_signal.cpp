#include "glue/stop_signal.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace glidepod::glue {

namespace {

// The rest: what cannot be caught, what stops and continues, and what a program does not notice by itself.
constexpr std::array k_others = {SIGKILL, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT, SIGCHLD, SIGURG};

}  // namespace

std::vector<int> stop_signals() {
  std::vector<int> signals;
  for (int number = 1; number <= SIGRTMAX; ++number) {
    // Between SIGSYS and SIGRTMIN are the C library's own.
    const bool known = number <= SIGSYS || number >= SIGRTMIN;
    if (known && std::ranges::count(k_others, number) == 0) signals.push_back(number);
  }
  return signals;
}

bool is_order_to_end(const signalfd_siginfo& info) {
  const int number = static_cast<int>(info.ssi_signo);
  return std::ranges::count(k_others, number) == 0 && static_cast<pid_t>(info.ssi_pid) != ::getpid();
}

std::string signal_name(int number) {
  if (number >= SIGRTMIN)
    return number == SIGRTMIN ? "SIGRTMIN" : fmt::format("SIGRTMIN+{}", number - SIGRTMIN);
  const char* name = sigabbrev_np(number);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", number);
}

}  // namespace glidepod::glue
