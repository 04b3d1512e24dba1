#include "podhost/keep/decide.hpp"

#include <algorithm>

namespace glidepod::podhost {
namespace {

using Do = Action::Kind;

bool running(const ContainerState& container) {
  return container.run && container.run->state != Run::State::ended;
}
bool succeeded(const ContainerState& container) {
  return container.run && container.run->state == Run::State::ended && container.run->exit_known &&
         container.run->exit_code == 0;
}

// What has run once holds up nothing any more.
bool begun(const ContainerState& container) {
  return container.run && container.run->reason != "StartError";
}

// No limit is more than any.
bool more(const std::optional<std::int64_t>& a, const std::optional<std::int64_t>& b) {
  return b && (!a || *a > *b);
}
// Of the limits, which is what a pod takes.
bool more(const Resources& a, const Resources& b) {
  return more(a.cpu_limit_milli, b.cpu_limit_milli) || more(a.memory_limit, b.memory_limit);
}
bool differs(const ContainerState& container, const ContainerSpec& wanted) {
  return container.run && container.run->state == Run::State::running && container.run->resources &&
         *container.run->resources != wanted.resources;
}

class Decider {
 public:
  Decider(const PodSpec& spec, const PodState& state, const BackoffRule& rule, Time now)
      : spec_(spec), state_(state), rule_(rule), now_(now) {}

  Decision run() {
    if (state_.deleting) {
      if (stop_all(*state_.deleting) && no_sandbox()) add({.kind = Do::forget});
    } else if (state_.failure || finished(spec_, state_)) {
      // Until the status is saved only podman's containers know how they ended. What fills the disk may be
      // the pod's volumes.
      if (stop_all(Seconds(spec_.grace_seconds)) && (state_.unsaved || no_sandbox()) && !state_.released)
        add({.kind = Do::release});
    } else if (past_deadline()) {
      add({.kind = Do::exceed_deadline});
    } else if (state_.sandbox == Sandbox::ready) {
      sync_containers();
    } else {
      sync_sandbox();
    }
    return std::move(decision_);
  }

 private:
  void add(Action action) { decision_.actions.push_back(std::move(action)); }

  // True once the time has come; otherwise decide() runs again then.
  bool due(Time when) {
    if (now_ >= when) return true;
    if (!decision_.wake_at || when < *decision_.wake_at) decision_.wake_at = when;
    return false;
  }

  bool past_deadline() {
    if (!spec_.deadline_seconds || state_.started == Time{}) return false;
    return due(state_.started + Seconds(*spec_.deadline_seconds));
  }

  void stop(const ContainerState& container, Seconds grace, bool replaced) {
    const Run& run = *container.run;
    // A later request may shorten the grace period, never lengthen it.
    const bool sooner = run.kill_at && now_ + grace < *run.kill_at;
    if (run.state == Run::State::running || sooner) {
      add({.kind = Do::stop, .container = container.name, .grace = grace, .replaced = replaced});
    } else if (run.kill_at && due(*run.kill_at)) {
      add({.kind = Do::kill, .container = container.name});
    }
  }

  // True when nothing runs or is being prepared.
  bool stop_all(Seconds grace) {
    bool quiet = state_.tasks == 0;
    for (const auto& container : state_.containers) quiet = stop_one(container, grace) && quiet;
    // Sidecars end after the containers that they are beside, the last one first.
    bool alone = std::ranges::none_of(state_.containers, running);
    for (std::size_t i = state_.init_containers.size(); i-- > 0;) {
      const ContainerState& container = state_.init_containers[i];
      const bool sidecar = i < spec_.init_containers.size() && spec_.init_containers[i].sidecar;
      const bool waits = sidecar && !alone && grace > Seconds(0);
      const bool still = waits ? discard_next(container) && !running(container)
                               : stop_one(container, sidecar ? left_for(container, grace) : grace);
      quiet = still && quiet;
      alone = alone && !running(container);
    }
    return quiet;
  }

  bool stop_one(const ContainerState& container, Seconds grace) {
    bool quiet = discard_next(container);
    if (running(container)) {
      stop(container, grace, false);
      quiet = false;
    }
    return quiet;
  }

  // False where it is starting: then it will run.
  bool discard_next(const ContainerState& container) {
    if (container.next && container.next->state != Next::State::starting)
      add({.kind = Do::discard, .container = container.name});
    return !container.next || container.next->state != Next::State::starting;
  }

  // What the pod's containers have left of the grace period, but never less than 2 s.
  Seconds left_for(const ContainerState& sidecar, Seconds grace) const {
    constexpr Seconds k_least{2};
    if (grace <= k_least || !running(sidecar) || sidecar.run->state == Run::State::stopping) return grace;
    Seconds left = grace;
    for (const auto& container : state_.containers)
      if (container.run && container.run->stop_by && !container.run->replaced)
        left = std::min(left, std::chrono::ceil<Seconds>(*container.run->stop_by - now_));
    return std::max(left, k_least);
  }

  // Has it removed if there is one.
  bool no_sandbox() {
    switch (state_.sandbox) {
      case Sandbox::creating:
      case Sandbox::removing:
        return false;
      case Sandbox::failed:
      case Sandbox::ready:
      case Sandbox::lost:
        if (!state_.removal_retry_at || due(*state_.removal_retry_at)) add({.kind = Do::remove_sandbox});
        return false;
      case Sandbox::none:
        return true;
    }
    return true;
  }

  void sync_sandbox() {
    switch (state_.sandbox) {
      case Sandbox::none:
        return add({.kind = Do::create_sandbox});
      case Sandbox::failed:
        if (!state_.sandbox_retry_at || due(*state_.sandbox_retry_at)) add({.kind = Do::remove_sandbox});
        return;
      case Sandbox::lost:
        if (stop_all(Seconds(0)) && !state_.unsaved) add({.kind = Do::remove_sandbox});
        return;
      case Sandbox::creating:
      case Sandbox::removing:
      case Sandbox::ready:
        return;
    }
  }

  void sync_containers() {
    for (std::size_t i = 0; i < state_.init_containers.size(); ++i) {
      const ContainerState& container = state_.init_containers[i];
      const bool sidecar = spec_.init_containers[i].sidecar;
      if (!sidecar && succeeded(container)) continue;
      sync(container, spec_.init_containers[i], sidecar);
      if (!sidecar || !begun(container)) return;
    }
    for (std::size_t i = 0; i < state_.containers.size(); ++i) {
      sync(state_.containers[i], spec_.containers[i], true);
    }
  }

  void sync(const ContainerState& container, const ContainerSpec& wanted, bool follow_image) {
    const bool changed = container.run && container.run->image != wanted.image;
    if (running(container)) {
      if ((changed && follow_image) || container.run->state == Run::State::stopping) {
        stop(container, Seconds(spec_.grace_seconds), changed);
      }
      if (!changed || !follow_image) {
        // A stopping container whose image was changed back is prepared again as soon as it has ended.
        if (container.next && container.next->state != Next::State::starting) discard(container);
        if (follow_image) resize(container, wanted);
        return;
      }
    }
    if (container.next && container.next->image != wanted.image &&
        container.next->state != Next::State::starting) {
      discard(container);
      return prepare(container, wanted);
    }
    if (container.next) {
      switch (container.next->state) {
        case Next::State::preparing:
        case Next::State::starting:
          return;
        case Next::State::failed:
          if (container.next->retry_at && due(*container.next->retry_at)) {
            add({.kind = Do::discard, .container = container.name});
            add({.kind = Do::prepare, .container = container.name});
          }
          return;
        case Next::State::ready:
        case Next::State::unstartable:
          if (!running(container)) add({.kind = Do::start, .container = container.name});
          return;
      }
    }
    prepare(container, wanted);
  }

  // What shrinks comes first: at no moment the containers have more than the spec says.
  void resize(const ContainerState& container, const ContainerSpec& wanted) {
    if (!differs(container, wanted) || container.run->resizing) return;
    if (more(wanted.resources, *container.run->resources) && shrinks(container)) return;
    if (container.run->resize_retry_at && !due(*container.run->resize_retry_at)) return;
    add({.kind = Do::resize, .container = container.name});
  }

  bool shrinks(const ContainerState& besides) const {
    const auto any = [&](const std::vector<ContainerState>& states, const std::vector<ContainerSpec>& specs) {
      for (std::size_t i = 0; i < states.size(); ++i)
        if (&states[i] != &besides && differs(states[i], specs[i]) &&
            more(*states[i].run->resources, specs[i].resources))
          return true;
      return false;
    };
    return any(state_.containers, spec_.containers) || any(state_.init_containers, spec_.init_containers);
  }

  void discard(const ContainerState& container) { add({.kind = Do::discard, .container = container.name}); }

  void prepare(const ContainerState& container, const ContainerSpec& wanted) {
    Action action{.kind = Do::prepare, .container = container.name};
    if (container.run && container.run->state == Run::State::ended) {
      const Run& run = *container.run;
      const bool at_once = run.replaced || run.image != wanted.image;
      if (!run.exit_known && !run.replaced) return;
      if (!run.replaced && !restarts(policy_of(spec_, wanted), run)) return;
      if (!at_once) {
        const auto when = restart_at(container, wanted.image, run.finished, rule_);
        if (when && !due(*when)) return;
        action.restart = true;
      }
    }
    add(std::move(action));
  }

  const PodSpec& spec_;
  const PodState& state_;
  const BackoffRule& rule_;
  Time now_;
  Decision decision_;
};

bool expired(const Backoff& backoff, Time when, const BackoffRule& rule) {
  return when - backoff.updated > 2 * rule.most;
}

}  // namespace

Decision decide(const PodSpec& spec, const PodState& state, const BackoffRule& rule, Time now) {
  return Decider(spec, state, rule, now).run();
}

std::optional<Time> restart_at(const ContainerState& container, const std::string& image, Time ended,
                               const BackoffRule& rule) {
  const auto found = container.restart_backoff.find(image);
  if (found == container.restart_backoff.end() || expired(found->second, ended, rule)) return std::nullopt;
  return ended + found->second.delay;
}

void count_restart(Backoff& backoff, Time ended, Time now, const BackoffRule& rule) {
  const bool fresh = backoff.delay == Seconds(0) || expired(backoff, ended, rule);
  backoff.delay = fresh ? rule.first : std::min(backoff.delay * 2, rule.most);
  backoff.updated = now;
}

bool restarts(RestartPolicy policy, const Run& run) {
  switch (policy) {
    case RestartPolicy::always:
      return true;
    case RestartPolicy::on_failure:
      return run.exit_code != 0;
    case RestartPolicy::never:
      return false;
  }
  return false;
}

RestartPolicy policy_of(const PodSpec& spec, const ContainerSpec& container) {
  return container.sidecar ? RestartPolicy::always : spec.restart_policy;
}

bool initialized(const PodSpec& spec, const PodState& state) {
  if (spec.init_containers.size() != state.init_containers.size()) return false;
  for (std::size_t i = 0; i < spec.init_containers.size(); ++i) {
    const ContainerState& container = state.init_containers[i];
    if (spec.init_containers[i].sidecar ? !begun(container) : !succeeded(container)) return false;
  }
  return true;
}

bool finished(const PodSpec& spec, const PodState& state) {
  const auto over = [&](const ContainerState& container, bool init) {
    if (!container.run || container.run->state != Run::State::ended || !container.run->exit_known)
      return false;
    if (container.run->replaced || container.next) return false;
    // An init container's Always means OnFailure.
    const RestartPolicy policy = init && spec.restart_policy == RestartPolicy::always
                                     ? RestartPolicy::on_failure
                                     : spec.restart_policy;
    return !restarts(policy, *container.run);
  };
  for (std::size_t i = 0; i < state.init_containers.size() && i < spec.init_containers.size(); ++i) {
    const ContainerState& container = state.init_containers[i];
    if (!spec.init_containers[i].sidecar && over(container, true) && container.run->exit_code != 0)
      return true;
  }
  return !state.containers.empty() &&
         std::ranges::all_of(state.containers, [&](const ContainerState& c) { return over(c, false); });
}

}  // namespace glidepod::podhost
