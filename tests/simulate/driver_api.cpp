// The agent's requests to the API, as lib/kube/client.cpp and watch.cpp make them.

#include "tests/simulate/driver.hpp"
#include "tests/simulate/world.hpp"

namespace glidepod::simulate {

using namespace agent;
using kube::Failure;

namespace {
constexpr Milliseconds k_attempt_timeout{15'000};
constexpr Milliseconds k_first_get_pause{30'000};
constexpr std::chrono::hours k_first_get_deadline{24};
}  // namespace

void Driver::exchange(Api::Change change, Time deadline, int attempt, bool unclear, PodHandler done) {
  const auto left = std::chrono::ceil<Milliseconds>(deadline - world_.now());
  const Milliseconds timeout = std::clamp(left, Milliseconds(1), k_attempt_timeout);
  const auto answered = [this, change, deadline, attempt, unclear, done](const Api::Answer& answer) {
    const auto* there = std::get_if<Failure>(&answer);
    if (!there) return done(answer);
    Failure failure = *there;
    const bool next = unclear || !failure.rejected();
    if (unclear) failure.earlier = Failure::Effect::unknown;
    const Milliseconds wait =
        http::backoff(attempt, static_cast<double>(world_.random.between(0, 100)) / 100, failure);
    if (!failure.retriable() || world_.now() + wait >= deadline) return done(failure);
    world_.clock.after(wait, mine([this, change, deadline, attempt, next, done] {
                         exchange(change, deadline, attempt + 1, next, done);
                       }));
  };
  world_.api.request(change, timeout, mine(answered));
}

void Driver::get_first_pod() {
  exchange({}, world_.now() + k_first_get_deadline, 1, false, [this](const Api::Answer& answer) {
    if (const auto* pod = std::get_if<PodVersion>(&answer)) {
      world_.say("agent: the first pod, version {}", (*pod)->resource_version);
      const auto earlier = was_before_ ? Core::Earlier::some : Core::Earlier::none;
      tell([&](Core& core, Time now) { core.on_first_pod(**pod, earlier, now); });
      world_.properties.told(**pod);
    } else {
      world_.clock.after(k_first_get_pause, mine([this] { get_first_pod(); }));
    }
  });
}

void Driver::adjust_watch() {
  if (!core_->watching()) {
    if (watch_ != 0) world_.api.unwatch();
    watch_ = 0;
    version_.clear();
  } else if (watch_ == 0) {
    watch_ = ++last_watch_;
    watch_failures_ = 0;
    watch_version_ = std::exchange(version_, {});
    watch_next();
  }
}

// watch_version_ is where a stream goes on from; without one, the present state comes first.
void Driver::watch_next() {
  const auto still = [this, id = watch_](auto what) {
    return mine([this, id, what = std::move(what)](const auto&... arguments) {
      if (id == watch_) what(arguments...);
    });
  };
  if (watch_version_.empty()) {
    return world_.api.request({}, k_attempt_timeout, still([this](const Api::Answer& answer) {
                                if (const auto* failure = std::get_if<Failure>(&answer))
                                  return watch_failed(*failure);
                                const PodVersion pod = std::get<PodVersion>(answer);
                                watch_failures_ = 0;
                                watch_version_ = pod->resource_version;
                                const std::uint64_t id = watch_;
                                tell([&](Core& core, Time now) { core.on_pod(*pod, now); });
                                world_.properties.told(*pod);
                                if (id == watch_) watch_next();
                              }));
  }
  world_.api.watch(std::stoull(watch_version_), still([this](const PodVersion& pod) {
                     watch_version_ = pod->resource_version;
                     tell([&](Core& core, Time now) { core.on_pod(*pod, now); });
                     world_.properties.told(*pod);
                   }),
                   still([this] {
                     watch_version_.clear();
                     watch_failed({Failure::Kind::transport, 0, {}, "cut", {}});
                   }));
}

void Driver::watch_failed(const Failure& failure) {
  world_.clock.after(
      http::backoff(++watch_failures_, static_cast<double>(world_.random.between(0, 100)) / 100, failure),
      mine([this, id = watch_] {
        if (id == watch_) watch_next();
      }));
}

void Driver::adjust_timer() {
  const auto due = core_->next_deadline();
  if (due == timer_due_) return;
  timer_due_ = due;
  ++timer_;
  if (!due) return;
  world_.clock.at(std::max(*due, world_.now()), mine([this, id = timer_] {
                    if (id != timer_) return;
                    timer_due_.reset();
                    ++timer_;
                    tell([](Core& core, Time now) { core.on_time(now); });
                  }));
}

}  // namespace glidepod::simulate
