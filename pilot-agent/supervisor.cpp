#include "pilot-agent/supervisor.hpp"

#include <signal.h>

#include "lib/base/log.hpp"

namespace glidepod::agent {
namespace {
constexpr Milliseconds k_last_grace{5'000};
}

Supervisor::Supervisor(Loop& loop, std::function<void(ExitStatus)> ended)
    : loop_(loop), ended_(std::move(ended)) {}

Supervisor::~Supervisor() {
  loop_.cancel(timer_);
  if (child_) loop_.forget(child_->pidfd().get());
}

Result<void> Supervisor::start(const std::vector<std::string>& command,
                               const std::vector<std::string>& environment) {
  Child::Options options;
  options.argv = command;
  options.environment = environment;
  // Without us its jobs have no containers: it must not outlive us.
  options.parent_death_signal = SIGQUIT;
  child_ = TRY(Child::spawn(options));
  stopping_ = false;
  TRY(loop_.watch(child_->pidfd().get(), EPOLLIN, [this](std::uint32_t) { on_end(); }));
  spdlog::info("event=command_started pid={} command={}", child_->pid(), quoted(command.front()));
  return {};
}

void Supervisor::stop(std::chrono::seconds grace) {
  if (!child_ || stopping_) return;
  stopping_ = true;
  grace_ = grace;
  escalate(SIGTERM);
}

void Supervisor::reconfigure() {
  if (!child_ || stopping_) return;
  const auto sent = child_->signal(SIGHUP);
  if (!sent) spdlog::warn("event=signal_failed reason={}", quoted(sent.error().message()));
}

void Supervisor::escalate(int number) {
  spdlog::info("event=command_signalled pid={} signal={}", child_->pid(), number);
  const auto sent = child_->signal(number);
  if (!sent) spdlog::warn("event=signal_failed reason={}", quoted(sent.error().message()));
  timer_ = 0;
  if (number == SIGTERM)
    timer_ = loop_.after(grace_, [this] { escalate(SIGQUIT); });
  else if (number == SIGQUIT)
    timer_ = loop_.after(k_last_grace, [this] { escalate(SIGKILL); });
}

void Supervisor::on_end() {
  loop_.forget(child_->pidfd().get());
  loop_.cancel(timer_);
  timer_ = 0;
  const auto ended = child_->wait();
  child_.reset();
  if (!ended) return spdlog::error("event=wait_failed reason={}", quoted(ended.error().message()));
  spdlog::info("event=command_ended status={}", quoted(ended->status.to_string()));
  ended_(ended->status);
}

}  // namespace glidepod::agent
