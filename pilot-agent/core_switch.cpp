// How a payload container gets another image, and how the core knows that it has it.

#include <algorithm>

#include "lib/base/log.hpp"
#include "lib/kube/image_reference.hpp"
#include "pilot-agent/core.hpp"
#include "pilot-agent/trouble.hpp"
#include "pilot-agent/words.hpp"

namespace glidepod::agent {

using kube::ContainerStatus;
using kube::ImageReference;

namespace {

// A tag that was never used before: the kubelet then sees another image string, and restarts the container
// without the pause that it makes before a string it has seen fail or end. The digest alone says what is run.
std::string with_nonce(std::string_view repository, std::string_view nonce, std::string_view digest) {
  return fmt::format("{}:{}@{}", repository, nonce, digest);
}

std::string full_name(const std::string& text) {
  const auto reference = ImageReference::parse(text);
  return reference ? reference->full_name() : std::string();
}

std::string full_repository(const std::string& text) {
  const auto reference = ImageReference::parse(text);
  return reference ? reference->full_repository() : std::string();
}

}  // namespace

std::string Core::nonce() {
  return fmt::format("{}-{}", policy_.nonce_prefix, ++last_nonce_);
}

std::string Core::home_reference() {
  if (home_.digest.empty()) return home_image_;
  return with_nonce(home_.repository, nonce(), home_.digest);
}

// None if the container can only get the image by way of another: its name is what the pod says already, and
// nothing else is known to mean the same.
std::optional<std::string> Core::reference_for(const Container& container, const std::string& image) {
  const auto known = known_.find(image);
  if (known != known_.end()) return with_nonce(known->second.repository, nonce(), known->second.digest);
  const auto reference = ImageReference::parse(image);
  if (reference && !reference->digest.empty())
    return with_nonce(reference->repository, nonce(), reference->digest);
  return container.reference == image ? std::nullopt : std::optional(image);
}

void Core::begin(Container& container, std::string target, std::optional<Waiting> waiting, Time now) {
  Switch change;
  change.same_image = !target.empty() && container.image == target;
  change.target = std::move(target);
  change.deadline = (waiting ? waiting->arrived : now) + policy_.bind_deadline;
  change.waiting = std::move(waiting);
  container.change = std::move(change);
  container.reservation.reset();
  container.state = State::switching;
  next_step(container, now);
  // While the node is busy. A request that fails here leaves a switch that somebody else may want.
  auto& request = container.change->waiting;
  if (request && ask(*request, now) == Command::failed) request.reset();
}

void Core::next_step(Container& container, Time now) {
  Switch& change = *container.change;
  std::optional<std::string> reference;
  if (container.settled && !change.target.empty()) reference = reference_for(container, change.target);
  change.home = !reference;
  change.reference = reference ? *std::move(reference) : home_reference();
  change.was_settled = container.settled;
  change.patched = change.goodbye = false;
  // A glue that is connected now and of a known image must say goodbye, and then the next one is of this
  // image. Without it a Hello may come from an image that the kubelet was told of before.
  change.by_status = !container.settled || container.glue == 0;
  change.least_restarts = container.instance + (container.reference == change.reference ? 0 : 1);
  change.pull_deadline.reset();
  change.unclear_until.reset();
  change.attempt = ++last_attempt_;
  container.settled = false;
  container.learning_until.reset();
  container.last_used = now;
  note("event=switch container={} image={} job={}", container.name, word(change.reference),
       word(change.waiting ? change.waiting->request.job : ""));
  act(Patch{change.attempt, container.name, change.reference, change.deadline});
}

// What runs in the container is what this step asked for.
void Core::step_done(Container& container, Time now) {
  Switch& change = *container.change;
  container.settled = true;
  container.spoiled = false;
  container.owner.clear();
  container.image = change.home ? std::string() : change.target;
  if (change.home) note("event=home container={}", container.name);
  if (change.home && !change.target.empty()) return next_step(container, now);
  const Switch done = *std::exchange(container.change, std::nullopt);
  container.state = State::idle;
  if (!done.home && !known_.contains(container.image))
    container.learning_until = now + 3 * policy_.status_patience;
  learn(container);
  if (done.waiting) ready(container, *done.waiting, done.same_image ? "fresh" : "switched", {}, now);
  dispatch(now);
}

void Core::fail_switch(Container& container, wire::Fault fault, const std::string& message, State next,
                       Time now) {
  const Switch change = *std::exchange(container.change, std::nullopt);
  container.state = next;
  if (change.waiting)
    fail(change.waiting->request, fault, message);
  else
    warn("event=switch_failed container={} image={} reason={}", container.name, word(change.reference),
         quoted(message));
  // Home at once, so that the kubelet stops trying and the next job finds the container ready.
  if (next == State::broken && !change.home && !finishing_) begin(container, {}, std::nullopt, now);
  dispatch(now);
}

void Core::on_hello(GlueId glue, const std::string& name, Time now) {
  Container* container = find(name);
  if (!container && !names_given_ && !pod_known_) {
    container = &containers_.emplace_back();
    container->name = name;
  }
  if (!container) {
    warn("event=refused container={} reason=\"not a payload container of this pod\"", word(name));
    return act(DropGlue{glue});
  }
  // One container has one glue: an older connection is dead, though its end has not been seen.
  if (container->glue != 0) {
    act(DropGlue{container->glue});
    glue_gone(*container, false, now);
  }
  container->glue = glue;
  container->instance = std::max(container->instance + 1, container->seen_restarts);
  note("event=hello container={} state={}", container->name, name_of(container->state));
  if (finishing_) return act(FinishGlue{glue});
  if (container->change) {
    Switch& change = *container->change;
    // Before the API has answered, the kubelet need not have heard of this image.
    if (!change.goodbye || !change.patched) change.by_status = true;
    if (!change.by_status) return step_done(*container, now);
    // The status may have been faster.
    if (change.patched && container->status) judge(*container, *container->status, now);
    return;
  }
  if (container->state == State::absent) {
    // The same image again, on a fresh file system.
    container->owner.clear();
    container->spoiled = false;
    container->state = State::idle;
    dispatch(now);
  }
}

void Core::look_at_home(const kube::Pod& pod) {
  const ContainerStatus* status = pod.status(home_container_);
  if (!status || status->image_id.empty()) return;
  home_image_id_ = status->image_id;
  home_ = {kube::repository_of(status->image_id), kube::digest_of(status->image_id)};
}

void Core::on_first_pod(const kube::Pod& pod, Earlier agents, Time now) {
  if (pod_known_ || pod.containers.empty()) return;
  home_container_ = pod.containers.front().name;
  home_image_ = pod.containers.front().image;
  look_at_home(pod);
  const ContainerStatus* own = pod.status(home_container_);
  fresh_pod_ = agents == Earlier::none && (!own || own->restart_count == 0);
  if (!names_given_) {
    for (std::size_t i = 1; i < pod.containers.size(); ++i) {
      const kube::ContainerSpec& spec = pod.containers[i];
      const bool payload = !spec.command.empty() && spec.command.front().ends_with("/glue");
      if (payload && !find(spec.name)) containers_.emplace_back().name = spec.name;
    }
  }
  pod_known_ = true;
  for (Container& container : containers_) {
    if (const kube::ContainerSpec* spec = pod.container(container.name)) container.reference = spec->image;
    if (const ContainerStatus* status = pod.status(container.name)) container.status = *status;
    if (fresh_pod_) continue;
    if (const ContainerStatus* status = pod.status(container.name))
      container.instance = std::max(container.instance, status->restart_count);
    container.settled = false;
    if (container.state == State::idle || container.state == State::absent)
      begin(container, {}, std::nullopt, now);
  }
  note("event=pod containers={} restarted={}", containers_.size(), fresh_pod_ ? "no" : "yes");
  dispatch(now);
}

void Core::on_patched(std::uint64_t attempt, const std::variant<kube::Pod, kube::Failure>& answer, Time now) {
  const auto found = std::ranges::find_if(containers_, [attempt](const Container& container) {
    return container.change && container.change->attempt == attempt;
  });
  if (found == containers_.end()) return;
  Container& container = *found;
  Switch& change = *container.change;
  if (const auto* pod = std::get_if<kube::Pod>(&answer)) {
    change.patched = true;
    container.reference = change.reference;
    const kube::ContainerSpec* spec = pod->container(container.name);
    container.admitted = spec ? spec->image : change.reference;
    return on_pod(*pod, now);
  }
  const auto& failure = std::get<kube::Failure>(answer);
  // Refused, so nothing has changed; without an answer, it may have.
  const bool unchanged = failure.rejected() && change.was_settled && container.glue != 0 && !change.goodbye;
  container.settled = unchanged;
  fail_switch(container, change.home ? wire::Fault::infrastructure : fault_of(failure), failure.to_string(),
              unchanged ? State::idle : State::broken, now);
}

void Core::on_pod(const kube::Pod& pod, Time now) {
  look_at_home(pod);
  // By index: what is done for one container may begin something with another, but adds none.
  for (std::size_t i = 0; i < containers_.size(); ++i) {
    Container& container = containers_[i];
    const ContainerStatus* status = pod.status(container.name);
    if (!status) continue;
    container.status = *status;
    container.seen_restarts = std::max(container.seen_restarts, status->restart_count);
    const bool running = status->state == ContainerStatus::State::running;
    if (container.settled && container.glue != 0 && running)
      container.instance = std::max(container.instance, status->restart_count);
    learn(container);
    if (container.change && container.change->patched) judge(container, *status, now);
  }
  check_lost(pod, now);
}

// Whether the status is of a container that runs the content this step asked for.
bool Core::shows_target(const Container& container, const ContainerStatus& status) const {
  if (container.change->home && !home_image_id_.empty() && status.image_id == home_image_id_) return true;
  const auto wanted = ImageReference::parse(container.admitted);
  if (!wanted) return false;
  if (!wanted->digest.empty()) return kube::digest_of(status.image_id) == wanted->digest;
  // The name shown is one of the names of what runs. If it is the name asked for, so is the content; if not,
  // nothing is known.
  return full_name(status.image) == wanted->full_name();
}

void Core::judge(Container& container, const ContainerStatus& status, Time now) {
  Switch& change = *container.change;
  if (status.state == ContainerStatus::State::running) change.pull_deadline.reset();
  if (status.state == ContainerStatus::State::running && change.by_status && container.glue != 0 &&
      status.restart_count >= change.least_restarts) {
    if (shows_target(container, status)) return step_done(container, now);
    if (!change.home && !change.unclear_until) change.unclear_until = now + policy_.status_patience;
    return;
  }
  const Trouble trouble = trouble_of(status);
  if (trouble.kind == Trouble::Kind::none) return;
  if (trouble.message != change.trouble && change.waiting)
    note("event=trouble container={} image={} job={} reason={}", container.name, word(change.reference),
         word(change.waiting->request.job), quoted(trouble.message));
  change.trouble = trouble.message;
  if (trouble.kind == Trouble::Kind::user && !change.home)
    return fail_switch(container, wire::Fault::user, trouble.message, State::broken, now);
  if (!change.pull_deadline) change.pull_deadline = now + policy_.pull_patience;
}

void Core::check_switch(Container& container, Time now) {
  Switch& change = *container.change;
  if (now >= change.deadline) {
    const std::string why = change.trouble.empty() ? std::string("no answer from the node") : change.trouble;
    return fail_switch(container, wire::Fault::infrastructure,
                       fmt::format("not ready in {} s: {}", policy_.bind_deadline.count(), why),
                       State::broken, now);
  }
  if (change.pull_deadline && now >= *change.pull_deadline) {
    const std::string why = change.trouble;
    return fail_switch(container, fault_after_patience(why), why, State::broken, now);
  }
  // The status names the running container otherwise than the pod does. The pilot's own image is known by
  // what the status says of the pilot's own container; from there the next step is proven by goodbye.
  if (change.unclear_until && now >= *change.unclear_until) next_step(container, now);
}

// The digest of a new image, from the status of the container that was started for it and no other.
void Core::learn(Container& container) {
  if (!container.learning_until || !container.settled || container.glue == 0 || !container.status) return;
  const ContainerStatus& status = *container.status;
  if (status.state != ContainerStatus::State::running || status.restart_count < container.instance) return;
  container.learning_until.reset();
  const Known known{kube::repository_of(status.image_id), kube::digest_of(status.image_id)};
  const auto asked = ImageReference::parse(container.image);
  const auto admitted = ImageReference::parse(container.admitted);
  // An image that the node also has under another name may be shown by that one, which the registry asked for
  // need not know.
  if (known.digest.empty() || !asked || !admitted ||
      full_repository(known.repository) != admitted->full_repository())
    return;
  known_[container.image] = {asked->repository, known.digest};
  note("event=digest image={} digest={}", word(container.image), known.digest);
}

}  // namespace glidepod::agent
