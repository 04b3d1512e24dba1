#include "glue/suspension.hpp"

#include <signal.h>

namespace glidepod::glue {

namespace {
// How long processes are looked for that have not had the signal.
constexpr Milliseconds k_limit = std::chrono::seconds(2);
}  // namespace

void Suspension::order(int number) {
  suspended_ = number != SIGCONT;
  pursue(number);
}

void Suspension::wake() {
  if (suspended_) pursue(SIGCONT);
}

void Suspension::pursue(int number) {
  pursuit_.emplace(number);
  until_ = Loop::now() + k_limit;
  pass();
}

void Suspension::pass() {
  timer_.stop();
  if (pursuit_->pass() || Loop::now() >= until_) return pursuit_.reset();
  timer_.set(pursuit_->pause(), [this] { pass(); });
}

}  // namespace glidepod::glue
