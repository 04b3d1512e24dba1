// A payload container gets the size of its job's slot before the job begins, if the cluster serves that. The
// image stays as it is until the kubelet has shown the size: if an image and a size come together, the
// kubelet loses the size (kubernetes#127356).

#include <algorithm>

#include "pilot-agent/core/core.hpp"
#include "pilot-agent/core/words.hpp"

namespace glidepod::agent {

using kube::SizeChange;
using Leg = Switching::Leg;

namespace {
constexpr std::string_view k_deaf = "glue does not answer";
constexpr std::string_view k_too_small =
    "the job's payload container cannot get the memory of the job's slot";

bool known(const Amount& amount) {
  return amount.cpu > 0 && amount.memory > 0;
}
}  // namespace

void Core::no_resizes(const std::string& why) {
  if (!policy_.resize || std::exchange(resizes_.off, true)) return;
  actions_.warn("event=resize_off reason={}", quoted(why));
}

std::vector<Sizeable> Core::sizeables() const {
  std::vector<Sizeable> result;
  for (const Container& container : containers_) {
    // Nobody knows what is left in a spoiled container.
    const bool idle = container.kind() == State::idle && container.glue != 0 && !container.spoiled;
    result.push_back({container.name, container.size, idle, 0});
  }
  return result;
}

// Whether the container has less memory than the slot. Then its job would be held for using memory that it
// may use. The size that the pod was made with always counts as enough.
bool Core::too_small(const Container& container, const Request& request) const {
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

Core::Fit Core::fit_of(const Container& container, const Request& request) {
  if (!policy_.resize || request.any_image || !known(request.slot_size)) return Fit::fits;
  const Amount& slot = request.slot_size;
  if (container.asked_memory == 0 && in_force({container.name, {container.size.request, slot}}))
    return Fit::fits;
  if (resizes_.served()) {
    if (resizes_.current) return Fit::wait;
    if (resizes_.settled_at) return too_small(container, request) ? Fit::wait : Fit::fits;
    if (plan_sizes(*resizes_.room, sizeables(), container.name, slot)) return Fit::resize;
  }
  return too_small(container, request) ? Fit::too_small : Fit::fits;
}

// For a container that has the image. Whether the request has been placed; nothing if the size does not
// matter.
std::optional<bool> Core::place_sized(Container& container, Waiting& waiting, const std::string& how,
                                      std::chrono::microseconds before, Time now) {
  switch (fit_of(container, waiting.request)) {
    case Fit::fits:
      return std::nullopt;
    case Fit::wait:
      return false;
    case Fit::too_small:
      fail_too_small(waiting.request);
      return true;
    case Fit::resize:
      break;
  }
  Switching step;
  step.same_image = true;
  step.target = container.image;
  step.deadline = waiting.arrived + policy_.bind_deadline;
  step.before = container.glue;
  step.how = how;
  step.before_bound = before;
  step.waiting = std::move(waiting);
  containers_.become(container, std::move(step), EventKind::assigned);
  begin_sizing(container, now);
  return true;
}

void Core::fail_too_small(const Request& request) {
  health_.failed(std::string(k_too_small));
  fail(request, wire::Fault::infrastructure, std::string(k_too_small));
}

void Core::begin_sizing(Container& container, Time now) {
  auto& step = std::get<Switching>(container.state);
  step.leg = Leg::size;
  step.answered = false;
  step.pull_deadline.reset();
  step.unclear_until.reset();
  step.mute_until.reset();
  const Amount slot = step.waiting->request.slot_size;
  resizes_.current =
      Sizing{container.name, slot, now + policy_.resize_patience / 3, now + policy_.resize_patience};
  container.last_used = now;
  // If a limit were below the memory in use, the kernel would kill processes.
  for (const Container& one : containers_) {
    const bool is_it = one.name == container.name;
    if (one.glue == 0 || (!is_it && one.kind() != State::idle)) continue;
    const std::uint64_t number = actions_.next_beat();
    resizes_.current->questions[number] = one.name;
    actions_.add(SendBeat{one.glue, number});
  }
}

// Whether the beat was the answer to one of the questions.
bool Core::take_used(const Container& container, const wire::Beat& beat, Time now) {
  if (!resizes_.current) return false;
  const auto question = resizes_.current->questions.find(beat.number);
  if (question == resizes_.current->questions.end() || question->second != container.name) return false;
  resizes_.current->questions.erase(question);
  resizes_.current->used_kib[container.name] = beat.memory_kib;
  settle(now);
  return true;
}

// Goes on once all glues have answered or are gone.
void Core::ask_sizes(Time now) {
  if (!resizes_.current || resizes_.current->attempt != 0 || !resizes_.current->questions.empty()) return;
  std::vector<Sizeable> all = sizeables();
  for (Sizeable& one : all) {
    const auto used = resizes_.current->used_kib.find(one.name);
    if (used != resizes_.current->used_kib.end()) one.used_kib = used->second;
    // If the container's memory in use is not known, its limit is not lowered.
    if (one.used_kib == 0) one.idle = false;
    if (one.used_kib == 0 && one.name == resizes_.current->container)
      return end_sizing("glue cannot tell how much memory is in use", EventKind::answered, now);
  }
  auto plan = plan_sizes(*resizes_.room, all, resizes_.current->container, resizes_.current->slot);
  if (!plan)
    return end_sizing("the sizes of all containers together do not fit into the pod", EventKind::answered,
                      now);
  resizes_.current->grow = std::move(plan->grow);
  ask_round(std::move(plan->shrink), EventKind::answered, now);
}

void Core::ask_round(std::vector<SizeChange> changes, EventKind event, Time now) {
  if (changes.empty()) changes = std::exchange(resizes_.current->grow, {});
  resizes_.current->attempt = actions_.next_attempt();
  resizes_.current->answered = resizes_.current->doubtful = false;
  if (changes.empty()) {
    const SizeChange own{resizes_.current->container, {{}, resizes_.current->slot}};
    if (in_force(own)) return end_sizing({}, event, now);
    // This resize was asked for before, and the kubelet may do it any moment.
    resizes_.current->answered = true;
    resizes_.current->asked = {own};
    return;
  }
  resizes_.current->asked = std::move(changes);
  for (const SizeChange& change : resizes_.current->asked) {
    Container& own = *containers_.find(change.container);
    const std::int64_t before = own.size.limit.memory, next = change.size.limit.memory;
    own.asked_memory = before > 0 ? std::min(before, next) : next;
    resizes_.current->before[own.name] = own.size.limit;
    actions_.note("event=resize container={} cpu_m={} memory_mib={}", change.container, change.size.limit.cpu,
                  change.size.limit.memory >> 20);
  }
  actions_.add(Resize{resizes_.current->attempt, resizes_.current->asked, resizes_.current->until});
}

void Core::on_resized(std::uint64_t attempt, const kube::Pod& pod, Time now) {
  if (resizes_.current && resizes_.current->attempt == attempt) {
    resizes_.current->answered = true;
    resizes_.current->generation = pod.generation;
    for (const SizeChange& change : resizes_.current->asked) {
      const auto* status = pod.status(change.container);
      const bool shown = status != nullptr && status->size.limit == change.size.limit;
      resizes_.current->doubtful |= shown && resizes_.current->before[change.container] != change.size.limit;
    }
  }
  on_pod(pod, now);
  // The status may have come before the answer.
  check_sizing(EventKind::answered, now);
  settle(now);
}

void Core::on_resized(std::uint64_t attempt, const kube::Failure& failure, Time now) {
  if (!resizes_.current || resizes_.current->attempt != attempt) return;
  if (failure.rejected()) {
    // All sizes stay as they were.
    for (const SizeChange& change : std::exchange(resizes_.current->asked, {}))
      containers_.find(change.container)->asked_memory = 0;
    if (!failure.retriable()) no_resizes(failure.to_string());
  }
  end_sizing(failure.to_string(), EventKind::answered, now);
  settle(now);
}

// Whether the pod's spec has these sizes, and the kubelet has them in force.
bool Core::in_force(const SizeChange& change) const {
  const Container* found = containers_.find(change.container);
  if (found == nullptr || !found->status) return false;
  return found->size.limit == change.size.limit && found->status->size.limit == change.size.limit;
}

// Takes the sizes of a newly seen pod, before the core looks at the containers' statuses.
void Core::see_sizes(const kube::Pod& pod) {
  resizes_.pending = pod.pending_resize;
  resizes_.observed_generation = pod.observed_generation;
  for (Container& container : containers_) {
    if (const auto* spec = pod.container(container.name)) container.size = spec->size;
    const auto* status = pod.status(container.name);
    if (status != nullptr && status->size.limit.memory > 0)
      container.memory_limit_kib = status->size.limit.memory / 1024;
  }
}

void Core::check_sizing(EventKind event, Time now) {
  if (resizes_.current && resizes_.current->attempt == 0 && now >= resizes_.current->answers_by) {
    // The limit of a container whose glue does not answer is not lowered.
    const bool deaf = std::ranges::any_of(resizes_.current->questions, [this](const auto& asked) {
      return asked.second == resizes_.current->container;
    });
    if (deaf) return end_sizing(k_deaf, event, now);
    resizes_.current->questions.clear();  // settle() goes on
  } else if (resizes_.current && now >= resizes_.current->until) {
    end_sizing(fmt::format("the kubelet has not resized the containers within {} seconds",
                           policy_.resize_patience.count()),
               event, now);
  } else if (resizes_.current && resizes_.current->answered) {
    const auto so = [this](const SizeChange& change) { return in_force(change); };
    const bool seen =
        !resizes_.current->doubtful ||
        (resizes_.current->generation != 0 && resizes_.observed_generation >= resizes_.current->generation);
    if (seen && std::ranges::all_of(resizes_.current->asked, so)) {
      for (const SizeChange& change : resizes_.current->asked)
        containers_.find(change.container)->asked_memory = 0;
      ask_round({}, event, now);
    } else if (resizes_.pending && resizes_.current->generation != 0 &&
               resizes_.pending->generation == resizes_.current->generation) {
      end_sizing("the kubelet says that the resize is " + resizes_.pending->reason, event, now);
    }
  }
  if (!resizes_.settled_at) return;
  const bool shown = resizes_.can_show && std::ranges::all_of(containers_, [](const Container& container) {
                       return container.status && container.status->size.limit == container.size.limit;
                     });
  if (!shown && now < *resizes_.settled_at) return;
  resizes_.settled_at.reset();
  for (Container& container : containers_) container.asked_memory = 0;
}

// Ends the resize. The container goes on to the request that it was found for.
void Core::end_sizing(std::string_view trouble, EventKind event, Time now) {
  Container& container = *containers_.find(resizes_.current->container);
  if (trouble.empty())
    resizes_.current.reset();
  else
    resizes_.leave(now + policy_.calm);
  if (!trouble.empty() && !resizes_.off && trouble != resizes_.trouble) {
    resizes_.trouble = trouble;
    actions_.warn("event=not_resized container={} reason={}", container.name, quoted(std::string(trouble)));
  }
  auto& step = std::get<Switching>(container.state);
  // A glue that does not answer is made anew with its container, which then gets its size.
  const bool deaf = trouble == k_deaf;
  if (!deaf && step.waiting && too_small(container, step.waiting->request))
    return fail_switch(container, wire::Fault::infrastructure, std::string(k_too_small), State::idle, event,
                       now);
  // The same if the container has turned out to run something else.
  if (deaf || container.spoiled) step.how.clear();
  if (step.how.empty()) return next_step(container, step, now);
  if (!step.waiting) return containers_.become(container, Idle{}, event);
  Switching done = std::move(step);
  ready(container, *std::move(done.waiting), done.how, done.before_bound, event, now);
}

}  // namespace glidepod::agent
