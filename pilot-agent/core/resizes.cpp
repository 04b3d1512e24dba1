#include "pilot-agent/core/resizes.hpp"

#include <algorithm>

#include "lib/base/log.hpp"

namespace glidepod::agent {

using kube::SizeChange;

namespace {
constexpr std::string_view k_deaf = "glue does not answer";

bool known(const Amount& amount) {
  return amount.cpu > 0 && amount.memory > 0;
}
}  // namespace

void Resizes::begin(const kube::Pod& pod, std::optional<Time> earlier_until) {
  see(pod);
  room_ = pod.payload_size;
  if (!room_) turn_off("the pod lacks the annotations with the size of all its payload containers together");
  // An earlier agent may have asked for resizes.
  if (policy_.resize) settled_at_ = earlier_until;
  for (Container& container : containers_) {
    const kube::ContainerSpec* spec = pod.container(container.name);
    if (spec == nullptr) continue;
    container.memory_limit_kib = spec->size.limit.memory / 1024;
    if (!earlier_until) container.made_memory = spec->size.limit.memory;
  }
}

void Resizes::turn_off(const std::string& why) {
  if (!policy_.resize || std::exchange(off_, true)) return;
  actions_.warn("event=resize_off reason={}", quoted(why));
}

std::vector<Sizeable> Resizes::sizeables() const {
  std::vector<Sizeable> result;
  for (const Container& container : containers_) {
    // Nobody knows what is left in a spoiled container.
    const bool idle = container.kind() == State::idle && container.glue != 0 && !container.spoiled;
    result.push_back({container.name, container.size, idle, 0});
  }
  return result;
}

bool Resizes::too_small(const Container& container, const Request& request) const {
  if (!policy_.resize || request.any_image || request.slot_size.memory == 0) return false;
  std::int64_t least = 0;
  const std::int64_t shown = container.status ? container.status->size.limit.memory : 0;
  for (const std::int64_t memory : {container.size.limit.memory, shown, container.asked_memory})
    if (memory > 0) least = least == 0 ? memory : std::min(least, memory);
  const std::int64_t needed = container.made_memory > 0
                                  ? std::min(container.made_memory, request.slot_size.memory)
                                  : request.slot_size.memory;
  return least > 0 && least < needed;
}

Resizes::Fit Resizes::fit_of(const Container& container, const Request& request) const {
  if (!policy_.resize || request.any_image || !known(request.slot_size)) return Fit::fits;
  const Amount& slot = request.slot_size;
  if (container.asked_memory == 0 && in_force({container.name, {container.size.request, slot}}))
    return Fit::fits;
  if (served()) {
    if (current_) return Fit::wait;
    if (settled_at_) return too_small(container, request) ? Fit::wait : Fit::fits;
    if (plan_sizes(*room_, sizeables(), container.name, slot)) return Fit::resize;
  }
  return too_small(container, request) ? Fit::too_small : Fit::fits;
}

void Resizes::begin_step(Container& container, Time now) {
  auto& step = std::get<Switching>(container.state);
  step.leg = Switching::Leg::size;
  step.answered = false;
  step.pull_deadline.reset();
  step.unclear_until.reset();
  step.mute_until.reset();
  container.last_used = now;
  start(container, step.waiting->request.slot_size, now);
}

void Resizes::start(const Container& container, const Amount& slot, Time now) {
  current_ = Current{container.name, slot, now + policy_.resize_patience / 3, now + policy_.resize_patience};
  // If a limit were below the memory in use, the kernel would kill processes.
  for (const Container& one : containers_) {
    const bool is_it = one.name == container.name;
    if (one.glue == 0 || (!is_it && one.kind() != State::idle)) continue;
    const std::uint64_t number = actions_.next_beat();
    current_->questions[number] = one.name;
    actions_.add(SendBeat{one.glue, number});
  }
}

bool Resizes::take_used(const Container& container, const wire::Beat& beat) {
  if (!current_) return false;
  const auto question = current_->questions.find(beat.number);
  if (question == current_->questions.end() || question->second != container.name) return false;
  current_->questions.erase(question);
  current_->used_kib[container.name] = beat.memory_kib;
  return true;
}

void Resizes::glue_gone(const std::string& container) {
  if (current_)
    std::erase_if(current_->questions, [&](const auto& asked) { return asked.second == container; });
}

std::optional<Resizes::End> Resizes::go_on(Time now) {
  if (!current_ || current_->attempt != 0 || !current_->questions.empty()) return std::nullopt;
  std::vector<Sizeable> all = sizeables();
  for (Sizeable& one : all) {
    const auto used = current_->used_kib.find(one.name);
    if (used != current_->used_kib.end()) one.used_kib = used->second;
    // If the container's memory in use is not known, its limit is not lowered.
    if (one.used_kib == 0) one.idle = false;
    if (one.used_kib == 0 && one.name == current_->container)
      return fail("glue cannot tell how much memory is in use", now);
  }
  auto plan = plan_sizes(*room_, all, current_->container, current_->slot);
  if (!plan) return fail("the sizes of all containers together do not fit into the pod", now);
  current_->grow = std::move(plan->grow);
  return ask_round(std::move(plan->shrink));
}

std::optional<Resizes::End> Resizes::ask_round(std::vector<SizeChange> changes) {
  if (changes.empty()) changes = std::exchange(current_->grow, {});
  current_->attempt = actions_.next_attempt();
  current_->answered = current_->doubtful = false;
  if (changes.empty()) {
    const SizeChange own{current_->container, {{}, current_->slot}};
    if (in_force(own)) return End{std::exchange(current_, std::nullopt)->container};
    // This resize was asked for before, and the kubelet may do it any moment.
    current_->answered = true;
    current_->asked = {own};
    return std::nullopt;
  }
  current_->asked = std::move(changes);
  for (const SizeChange& change : current_->asked) {
    Container& own = *containers_.find(change.container);
    const std::int64_t before = own.size.limit.memory, next = change.size.limit.memory;
    own.asked_memory = before > 0 ? std::min(before, next) : next;
    current_->before[own.name] = own.size.limit;
    actions_.note("event=resize container={} cpu_m={} memory_mib={}", change.container, change.size.limit.cpu,
                  change.size.limit.memory >> 20);
  }
  actions_.add(Resize{current_->attempt, current_->asked, current_->until});
  return std::nullopt;
}

void Resizes::taken(std::uint64_t attempt, const kube::Pod& pod) {
  if (!current_ || current_->attempt != attempt) return;
  current_->answered = true;
  current_->generation = pod.generation;
  for (const SizeChange& change : current_->asked) {
    const auto* status = pod.status(change.container);
    const bool shown = status != nullptr && status->size.limit == change.size.limit;
    current_->doubtful |= shown && current_->before[change.container] != change.size.limit;
  }
}

std::optional<Resizes::End> Resizes::refused(std::uint64_t attempt, const kube::Failure& failure, Time now) {
  if (!current_ || current_->attempt != attempt) return std::nullopt;
  if (failure.rejected()) {
    // All sizes stay as they were.
    for (const SizeChange& change : std::exchange(current_->asked, {}))
      containers_.find(change.container)->asked_memory = 0;
    if (!failure.retriable()) turn_off(failure.to_string());
  }
  return fail(failure.to_string(), now);
}

// Whether the pod's spec has these sizes, and the kubelet has them in force.
bool Resizes::in_force(const SizeChange& change) const {
  const Container* found = std::as_const(containers_).find(change.container);
  if (found == nullptr || !found->status) return false;
  return found->size.limit == change.size.limit && found->status->size.limit == change.size.limit;
}

void Resizes::see(const kube::Pod& pod) {
  pending_ = pod.pending_resize;
  observed_generation_ = pod.observed_generation;
  for (Container& container : containers_) {
    if (const auto* spec = pod.container(container.name)) container.size = spec->size;
    const auto* status = pod.status(container.name);
    if (status != nullptr && status->size.limit.memory > 0)
      container.memory_limit_kib = status->size.limit.memory / 1024;
  }
}

std::optional<Resizes::End> Resizes::check(Time now) {
  if (!current_) return std::nullopt;
  if (current_->attempt == 0 && now >= current_->answers_by) {
    // The limit of a container whose glue does not answer is not lowered.
    const bool deaf = std::ranges::any_of(
        current_->questions, [this](const auto& asked) { return asked.second == current_->container; });
    current_->questions.clear();
    if (!deaf) return std::nullopt;  // go_on() goes on
    End end = fail(k_deaf, now);
    end.deaf = true;
    return end;
  }
  if (now >= current_->until)
    return fail(fmt::format("the kubelet has not resized the containers within {} seconds",
                            policy_.resize_patience.count()),
                now);
  if (!current_->answered) return std::nullopt;
  const auto so = [this](const SizeChange& change) { return in_force(change); };
  const bool seen =
      !current_->doubtful || (current_->generation != 0 && observed_generation_ >= current_->generation);
  if (seen && std::ranges::all_of(current_->asked, so)) {
    for (const SizeChange& change : current_->asked) containers_.find(change.container)->asked_memory = 0;
    return ask_round({});
  }
  if (pending_ && current_->generation != 0 && pending_->generation == current_->generation)
    return fail("the kubelet says that the resize is " + pending_->reason, now);
  return std::nullopt;
}

void Resizes::check_left(Time now) {
  if (!settled_at_) return;
  const bool shown = can_show_ && std::ranges::all_of(containers_, [](const Container& container) {
                       return container.status && container.status->size.limit == container.size.limit;
                     });
  if (!shown && now < *settled_at_) return;
  settled_at_.reset();
  for (Container& container : containers_) container.asked_memory = 0;
}

Resizes::End Resizes::fail(std::string_view trouble, Time now) {
  const std::string container = current_->container;
  leave(container, now);
  if (!off_ && trouble != last_trouble_) {
    last_trouble_ = trouble;
    actions_.warn("event=not_resized container={} reason={}", container, quoted(last_trouble_));
  }
  return {container, std::string(trouble)};
}

void Resizes::leave(const std::string& container, Time now) {
  if (!current_ || current_->container != container) return;
  const Current left = *std::exchange(current_, std::nullopt);
  if (left.attempt == 0 || left.asked.empty()) return;
  settled_at_ = now + policy_.calm;
  can_show_ = left.answered && !left.doubtful;
}

std::optional<Time> Resizes::next_deadline() const {
  if (!current_) return settled_at_;
  const Time due = current_->attempt == 0 ? current_->answers_by : current_->until;
  return settled_at_ ? std::min(due, *settled_at_) : due;
}

}  // namespace glidepod::agent
