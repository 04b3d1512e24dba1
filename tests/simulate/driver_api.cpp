// The agent's requests to the API, as lib/kube's client, pod_images and watch make them.

#include <algorithm>

#include "lib/kube/image_reference.hpp"
#include "tests/simulate/driver.hpp"
#include "tests/simulate/world.hpp"

namespace glidepod::simulate {

using namespace agent;
using kube::Failure;

namespace {
constexpr Milliseconds k_attempt_timeout{15'000};
constexpr Milliseconds k_first_silence{5'000}, k_longest_silence{30'000}, k_question_limit{5'000};
constexpr Milliseconds k_first_get_pause{30'000};
constexpr std::chrono::hours k_first_get_deadline{24};
}  // namespace

void Driver::exchange(const Api::Change& change, Time deadline, int attempt, bool unclear,
                      const PodHandler& done, std::uint64_t patch) {
  const auto left = std::chrono::ceil<Milliseconds>(deadline - world_.now());
  const Milliseconds timeout = std::clamp(left, Milliseconds(1), k_attempt_timeout);
  const auto answered = [this, change, deadline, attempt, unclear, done, patch](const Api::Answer& answer) {
    if (given_up(patch)) return;
    const auto* there = std::get_if<Failure>(&answer);
    if (!there) return done(answer);
    Failure failure = *there;
    const bool next = unclear || !failure.rejected();
    if (unclear) failure.earlier = Failure::Effect::unknown;
    const Milliseconds wait =
        http::backoff(attempt, static_cast<double>(world_.random.between(0, 100)) / 100, failure);
    if (!failure.retriable() || world_.now() + wait >= deadline) return done(failure);
    world_.clock.after(wait, mine([this, change, deadline, attempt, next, done, patch] {
                         if (!given_up(patch)) exchange(change, deadline, attempt + 1, next, done, patch);
                       }));
  };
  world_.api.request(change, timeout, mine(answered));
}

// For a newer one of its container.
bool Driver::given_up(std::uint64_t patch) const {
  const auto is_it = [patch](const auto& newest) { return newest.second == patch; };
  return patch != 0 && std::ranges::none_of(patches_, is_it);
}

void Driver::saw(const PodVersion& pod) {
  if (!seen_ || Api::version(*pod) >= Api::version(*seen_)) seen_ = pod;
}

void Driver::change(ImageChange change) {
  const Patch& wanted = change.wanted;
  if (!seen_) return look(std::move(change));
  const std::string& before = seen_->container(wanted.container)->image;
  const bool once = once_.contains(wanted.container) && once_[wanted.container] == before;
  change.tried = {wanted.container, wanted.image, before, once ? "" : seen_->resource_version};
  const auto answered = [this, change](const Api::Answer& answer) mutable {
    const auto* failure = std::get_if<Failure>(&answer);
    if (failure == nullptr || failure->status != 422) return changed(change, answer);
    if (!failure->rejected()) change.unclear = true;
    change.refusal = *failure;
    look(std::move(change));
  };
  exchange(change.tried, wanted.deadline, 1, false, answered, wanted.attempt);
}

void Driver::look(ImageChange change) {
  const Patch& wanted = change.wanted;
  const auto looked = [this, change](const Api::Answer& answer) mutable {
    if (const auto* pod = std::get_if<PodVersion>(&answer)) {
      saw(*pod);
      const Api::Change& tried = change.tried;
      const bool same_version = tried.version.empty() || tried.version == (*pod)->resource_version;
      const bool same = same_version && (*pod)->container(change.wanted.container)->image == tried.before;
      if (change.refusal && same) return changed(change, *change.refusal);
      if (world_.now() < change.wanted.deadline) return this->change(std::move(change));
    }
    if (change.refusal) change.unclear = true;
    changed(change, std::holds_alternative<Failure>(answer) ? answer : Api::Answer(*change.refusal));
  };
  exchange({}, wanted.deadline, 1, false, looked, wanted.attempt);
}

void Driver::changed(const ImageChange& change, const Api::Answer& answer) {
  const std::uint64_t attempt = change.wanted.attempt;
  patches_.erase(change.wanted.container);
  const auto* pod = std::get_if<PodVersion>(&answer);
  if (pod == nullptr) {
    Failure failure = std::get<Failure>(answer);
    if (change.unclear) failure.earlier = Failure::Effect::unknown;
    world_.say("agent: the answer to Patch {}: {}", attempt, failure.to_string());
    return tell([&](Core& core, Time now) { core.on_patched(attempt, failure.to_error(), now); });
  }
  saw(*pod);
  const std::string& admitted = (*pod)->container(change.wanted.container)->image;
  if (change.wanted.once && kube::keeps_tag(change.wanted.image, admitted))
    once_[change.wanted.container] = admitted;
  version_ = (*pod)->resource_version;
  world_.say("agent: the answer to Patch {}: version {}", attempt, version_);
  tell([&](Core& core, Time now) { core.on_patched(attempt, **pod, now); });
  world_.properties.told(**pod);
}

// What lib/kube/pod_resize.cpp makes of a Resize: the pod as it is, then the change of that version.
void Driver::resize(SizeChange change) {
  const auto looked = [this, change](const Api::Answer& answer) mutable {
    if (resize_ != change.wanted.attempt) return;
    const auto* pod = std::get_if<PodVersion>(&answer);
    change.unclear |= pod == nullptr && change.refusal;
    if (pod == nullptr) return resized(change, answer);
    const bool same = change.tried == (*pod)->resource_version;
    if (change.refusal && (same || world_.now() >= change.wanted.deadline))
      return resized(change, *change.refusal);
    change.tried = (*pod)->resource_version;
    const auto patched = [this, change](const Api::Answer& changed) mutable {
      if (resize_ != change.wanted.attempt) return;
      const auto* failure = std::get_if<Failure>(&changed);
      if (failure == nullptr || failure->status != 422) return resized(change, changed);
      change.refusal = *failure;
      change.unclear |= !failure->rejected();
      resize(change);
    };
    exchange({.version = change.tried, .sizes = change.wanted.changes}, change.wanted.deadline, 1, false,
             patched);
  };
  exchange({}, change.wanted.deadline, 1, false, looked);
}

void Driver::resized(const SizeChange& change, const Api::Answer& answer) {
  resize_ = 0;
  const std::uint64_t attempt = change.wanted.attempt;
  const auto* pod = std::get_if<PodVersion>(&answer);
  if (pod == nullptr) {
    Failure failure = std::get<Failure>(answer);
    if (change.unclear) failure.earlier = Failure::Effect::unknown;
    world_.say("agent: the answer to Resize {}: {}", attempt, failure.to_string());
    return tell([&](Core& core, Time now) { core.on_resized(attempt, failure.to_error(), now); });
  }
  world_.say("agent: the answer to Resize {}: taken", attempt);
  saw(*pod);
  version_ = (*pod)->resource_version;
  tell([&](Core& core, Time now) { core.on_resized(attempt, **pod, now); });
  world_.properties.told(**pod);
}

void Driver::get_first_pod() {
  exchange({}, world_.now() + k_first_get_deadline, 1, false, [this](const Api::Answer& answer) {
    if (const auto* pod = std::get_if<PodVersion>(&answer)) {
      world_.say("agent: the first pod, version {}", (*pod)->resource_version);
      saw(*pod);
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
                                const std::uint64_t id = watch_;
                                watched(pod);
                                if (id == watch_) watch_next();
                              }));
  }
  await_word(k_first_silence);
  world_.api.watch(std::stoull(watch_version_), still([this](const PodVersion& pod) {
                     await_word(k_first_silence);
                     watched(pod);
                   }),
                   still([this] {
                     watch_version_.clear();
                     watch_failed({Failure::Kind::transport, 0, {}, "cut", {}});
                   }));
}

void Driver::watched(const PodVersion& pod) {
  watch_version_ = pod->resource_version;
  saw(pod);
  tell([&](Core& core, Time now) { core.on_pod(*pod, now); });
  world_.properties.told(*pod);
}

// What lib/kube/pod_watch.cpp makes of a stream that tells nothing: it asks.
void Driver::await_word(Milliseconds silence) {
  ++words_;
  if (world_.weather.silent_streams == 0) return;  // nothing would be heard
  const auto still = [this](auto what) {
    return mine([this, id = watch_, words = words_, what](const auto&... arguments) {
      if (id == watch_ && words == words_) what(arguments...);
    });
  };
  world_.clock.after(silence, still([this, silence, still] {
                       world_.api.request({}, k_question_limit,
                                          still([this, silence](const Api::Answer& answer) {
                                            const auto* pod = std::get_if<PodVersion>(&answer);
                                            if (pod == nullptr) return await_word(silence);
                                            const auto told = std::stoull(watch_version_);
                                            if (Api::version(**pod) <= told)
                                              return await_word(std::min(2 * silence, k_longest_silence));
                                            const std::uint64_t id = watch_;
                                            watched(*pod);
                                            if (id == watch_) watch_next();
                                          }));
                     }));
}

void Driver::watch_failed(const Failure& failure) {
  ++words_;
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
