#include "pilot-agent/core/switches.hpp"

#include <algorithm>

#include "lib/kube/image_reference.hpp"
#include "lib/kube/wait_reason.hpp"
#include "pilot-agent/core/proof.hpp"
#include "pilot-agent/core/words.hpp"

namespace glidepod::agent {

using kube::ContainerStatus;
using Leg = Switching::Leg;
using Proof = Switching::Proof;

namespace {
using Outcome = Switches::Outcome;

constexpr std::chrono::seconds k_test_again{10};

Outcome failed(wire::Fault fault, std::string message, State next = State::broken) {
  return {Outcome::Kind::failed, fault, std::move(message), next};
}

bool is_plain(const std::string& reference) {
  const auto image = kube::ImageReference::parse(reference);
  return image && image->digest.empty();
}

// Whether the container of the connected glue started after the patch was sent. An older container may show
// the content asked for too, but the kubelet is going to stop it, and it may have had a job.
bool came_after(const Container& container, const Switching& step) {
  if (step.leg == Leg::check) return true;
  if (container.glue == step.connected) return false;
  if (container.instance.empty()) return true;
  // A glue from an earlier agent's time may connect again late.
  if (container.inherited && step.last_instance.empty()) return false;
  return container.instance != step.last_instance;
}

// Whether the words of a kubelet or a registry name this very image.
bool is_about(const std::string& words, const std::string& reference) {
  const auto image = kube::ImageReference::parse(reference);
  return image &&
         (words.find(reference) != std::string::npos || words.find(image->full_name()) != std::string::npos);
}
// Whether these words are about a start that the status tells together with its image. In other cases a
// status may mix two instances: the image of one, and the reason of the one before.
bool is_of_last_start(const std::string& words, const ContainerStatus& status, const std::string& reference) {
  const auto& last = status.last_terminated;
  return last && kube::never_started(last->reason) && one_line(last->message) == words &&
         !status.image_id.empty() && shows_image(status, reference);
}

// Whether the image asked for runs in a container whose glue has never connected. An image can cause that: if
// its /etc/resolv.conf is a link, the runtime may mount that file over the agent's socket.
bool is_mute(const Container& container, const Switching& step, const ContainerStatus& status) {
  return container.glue == 0 && step.answered && step.leg == Leg::target &&
         !container.last_instance.empty() && status.state == ContainerStatus::State::running &&
         !is_of(status, container.last_instance) && shows_image(status, container.told.admitted);
}
}  // namespace

Container* Switches::for_test(Containers& containers, Time now) {
  if (!owes_test() || now < health_.no_test_before) return nullptr;
  // A young pod's status does not name the images yet, and a made-up tag needs the digest.
  if (references_.home().image_id.empty()) return nullptr;
  for (const Container& container : containers)
    if (container.kind() == State::switching) return nullptr;
  Container* container = containers.for_test(now);
  if (container != nullptr) health_.no_test_before = now + k_test_again;
  return container;
}

void Switches::next_step(Container& container, Time now) {
  auto& step = std::get<Switching>(container.state);
  step.proof = proof_for(container);
  std::optional<References::Reference> reference;
  const bool provable = step.proof == Proof::goodbye || !step.goodbye_needed;
  auto* by_id = references_.ids_work() || step.by_id ? &container.named_by_id : nullptr;
  if (!step.asked.is_home() && provable)
    reference = references_.reference_for(step.asked, container.told.reference, by_id);
  step.leg = reference ? Leg::target : Leg::home;
  if (!reference) reference = references_.home_reference(by_id);
  step.reference = reference->name;
  if (step.leg == Leg::target && !step.goodbye_needed && references_.may_be_home(step.asked))
    step.proof = Proof::status;
  step.answered = step.alike = false;
  step.pull_deadline.reset();
  step.trouble_since.reset();
  step.unclear_until.reset();
  step.trouble = {};
  step.connected = container.glue;
  step.last_instance = container.last_instance;
  step.attempt = actions_.next_attempt();
  // Remembers what ran before. If the status shows that again, the job did not get its image.
  if (container.status && is_of(*container.status, container.instance))
    container.shown = container.status->image_id;
  // After a short job the status shows this container only while the kubelet ends it.
  if (container.learning_until && !container.instance.empty())
    container.unlearnt = {container.instance, container.proven, container.told.admitted};
  container.learning_until.reset();
  container.last_used = now;
  actions_.note("event=switch container={} image={} job={} proof={}", container.name, word(step.reference),
                word(step.waiting ? step.waiting->request.job : ""), name_of(step.proof));
  if (kube::is_by_id(step.reference))
    actions_.note("event=by_id container={} image={} name={}", container.name,
                  word(references_.name_of(step.leads_to())), word(step.reference));
  if (container.ran.contains(step.reference))
    actions_.note(
        "event=name_again container={} image={} reason=\"no digest of this image is known, so its name comes "
        "again: the kubelet may wait up to 300 seconds before it starts it\"",
        container.name, word(step.reference));
  actions_.add(Patch{step.attempt, container.name, step.reference, reference->once, step.deadline});
}

Switches::Outcome Switches::patched(Container& container, const kube::Pod& pod, Time now) {
  auto& step = std::get<Switching>(container.state);
  const kube::ContainerSpec* spec = pod.container(container.name);
  const std::string& admitted = spec != nullptr ? spec->image : step.reference;
  // The pilot's own image has its plain name here, since no other name is known. The pod had that name
  // before, so nothing is started.
  const bool unchanged = container.told.admitted == admitted && container.glue != 0;
  if (references_.see_admitted(step.reference, admitted))
    actions_.warn(
        "event=tags_dropped container={} asked={} got={} reason=\"admission changes the tag of an image that "
        "has a digest: the kubelet may wait up to 300 seconds before it starts the same name again\"",
        container.name, word(step.reference), word(admitted));
  step.answered = true;
  step.answered_at = now;
  container.told = {step.leads_to(), step.reference, admitted};
  if (unchanged) {
    // It must be fresh, which only a new container is.
    if (container.spoiled || container.inherited || !container.owner.empty())
      return {.kind = Outcome::Kind::stale};
    if (step.proof == Proof::goodbye && step.before == container.glue) return {.kind = Outcome::Kind::done};
    // The kubelet will not stop the container.
    step.connected = 0;
    step.last_instance.clear();
  }
  return go_on(container, now);
}

Switches::Outcome Switches::go_on(Container& container, Time now) {
  const auto& step = std::get<Switching>(container.state);
  if (step.proof == Proof::status) container.unsettle(now + policy_.calm);
  return judge(container, now);
}

// The runtime knows no image by the beginning of its id, the node has it no more, or a rule of the cluster's
// is in the way. The plain name takes its place, with whatever pause it has.
void Switches::leave_id(Container& container, const std::string& why, Time now) {
  auto& step = std::get<Switching>(container.state);
  actions_.warn("event=not_by_id container={} name={} reason={}", container.name, word(step.reference),
                quoted(why));
  references_.id_refused(step.leads_to());
  step.by_id = false;
  step.left_id = true;
  next_step(container, now);
}

Switches::Outcome Switches::not_patched(Container& container, const kube::Failure& failure, Time now) {
  const auto& step = std::get<Switching>(container.state);
  // If the API refused the patch, nothing has changed. If it did not answer, the image may have changed.
  const bool refused = failure.rejected();
  const bool unchanged = refused && step.before != 0 && step.before == container.glue;
  if (refused && kube::is_by_id(step.reference)) {
    leave_id(container, failure.to_string(), now);
    return {};
  }
  return failed(step.leg == Leg::home ? wire::Fault::infrastructure : fault_of(failure), failure.to_string(),
                unchanged ? State::idle : State::broken);
}

Switches::Outcome Switches::hello(Container& container, Time now) {
  auto& step = std::get<Switching>(container.state);
  if (proven_by_goodbye(step)) return {.kind = Outcome::Kind::done};
  // Before the API has answered, the kubelet may not have heard of this image, and after a crash the old
  // image may start again. If ids are not known, the time from now on decides.
  if (step.proof == Proof::goodbye || container.instance.empty()) {
    step.proof = Proof::status;
    container.unsettle(now + policy_.calm);
  }
  // The status may have come before the Hello.
  return judge(container, now);
}

Switches::Outcome Switches::glue_gone(Container& container, EventKind event, Time now) {
  auto& step = std::get<Switching>(container.state);
  step.unclear_until.reset();
  if (step.leg == Leg::calm) step.leg = Leg::check;
  if (event == EventKind::lost && step.proof == Proof::goodbye) {
    step.proof = Proof::status;
    container.unsettle(now + policy_.calm);
  }
  // The status may have come before the goodbye.
  if (event == EventKind::goodbye && container.shown_running && step.attempt != 0)
    return judge(container, now);
  return {};
}

// Whether the status is of the container whose glue is connected. If its id is not known, time decides: after
// this time without a change, the status must be of the container that runs.
bool Switches::shows_instance(const Container& container, const ContainerStatus& status, Time now) const {
  if (!container.instance.empty()) return is_of(status, container.instance);
  return status.state == ContainerStatus::State::running && now >= container.since + policy_.calm &&
         now >= container.calm_at.value_or(now);
}

bool Switches::shows_told(const Container& container, const ContainerStatus& status) const {
  if (container.told.asked.is_home() && shows_home(status, references_.home())) return true;
  return shows_image(status, container.told.admitted);
}

Switches::Outcome Switches::judge(Container& container, Time now) {
  auto& step = std::get<Switching>(container.state);
  if (step.leg == Leg::calm || step.leg == Leg::size) return {};
  static const ContainerStatus k_none;
  const ContainerStatus& status = container.status ? *container.status : k_none;
  if (status.state == ContainerStatus::State::running) {
    step.pull_deadline.reset();
    step.trouble_since.reset();
  }
  if (!is_mute(container, step, status))
    step.mute_until.reset();
  else if (!step.mute_until)
    step.mute_until = now + patience_with({Trouble::Kind::unknown, {}, false, true}, policy_);
  const bool waiting = status.state == ContainerStatus::State::waiting;
  // A glue is about to go if its container was shown running and is not any more.
  if (container.glue != 0 && !(waiting && container.shown_running)) {
    if (step.proof != Proof::status || (!step.answered && step.leg != Leg::check)) return {};
    if (!shows_instance(container, status, now)) return {};
    if (container.instance.empty()) container.calm_at.reset();
    if (!came_after(container, step)) {
      // A newer container comes, unless the pod had that name already, so that nothing is started.
      if (!step.unclear_until) step.unclear_until = now + policy_.calm;
      return {};
    }
    if (shows_told(container, status)) return {.kind = Outcome::Kind::done};
    // The kubelet may be one image behind. If it leaves the container alone, the image is another name of the
    // pilot's own content.
    step.alike = step.leg == Leg::target && shows_home(status, references_.home()) &&
                 references_.may_be_home(step.asked);
    if (step.alike && !container.settled()) return {};
    if (step.alike) {
      references_.proved_home(step.asked);
      return {.kind = Outcome::Kind::done};
    }
    if (step.leg != Leg::home && !step.unclear_until) step.unclear_until = now + policy_.status_patience;
    return {};
  }
  // The rest is about a container that does not start.
  const Trouble trouble = trouble_of(status, credentials_);
  if (trouble.kind == Trouble::Kind::none || !step.answered) return {};
  // While the kubelet waits before its next try, the trouble of the last try stays known.
  const bool says_why = !trouble.back_off || step.trouble.kind == Trouble::Kind::none;
  const bool another_kind = says_why && trouble.kind != step.trouble.kind;
  if (says_why && trouble.message != step.trouble.message && step.waiting)
    actions_.note("event=trouble container={} image={} job={} reason={}", container.name,
                  word(step.reference), word(step.waiting->request.job), quoted(trouble.message));
  if (says_why) step.trouble = trouble;
  const auto waits_for = kube::wait_reason_of(status.reason);
  const bool alone = step.proof == Proof::goodbye && container.glue == 0;
  // By then the status tells of this image, or the name by the id is of no use anyway.
  const bool late = now >= step.answered_at + policy_.status_patience;
  if (kube::is_by_id(step.reference) &&
      (alone || late || is_about(trouble.message, container.told.admitted)) &&
      (waits_for == kube::WaitReason::pull || waits_for == kube::WaitReason::never)) {
    leave_id(container, trouble.message, now);
    return {};
  }
  if (step.leg == Leg::target && waits_for == kube::WaitReason::pull) pulls_.missed(step.asked);
  if (trouble.kind == Trouble::Kind::user && step.leg == Leg::target) {
    const std::string& words = trouble.message;
    if (alone || is_about(words, container.told.admitted) ||
        is_of_last_start(words, status, container.told.admitted))
      return failed(wire::Fault::user, trouble.message);
    if (step.proof == Proof::goodbye) return {};  // the goodbye will come soon
    // The trouble may be that of an earlier image. The kubelet names the image when it says that it waits
    // before its next try. Until then nothing is blamed on this image.
  }
  // A name that comes again: the kubelet makes its pause, which is nobody's fault.
  const bool comes_again = references_.tags_dropped() || container.ran.contains(step.reference);
  const bool same_name = comes_again && trouble.back_off && (step.trouble.back_off || step.left_id) &&
                         waits_for == kube::WaitReason::back_off;
  if (same_name && container.glue == 0 && references_.may_try_id(step.leads_to())) {
    step.by_id = true;
    next_step(container, now);
    return {};
  }
  if (step.trouble.kind == Trouble::Kind::busy || same_name) {
    step.pull_deadline.reset();
    return {};
  }
  if (!step.trouble_since || (another_kind && trouble.kind == Trouble::Kind::user)) step.trouble_since = now;
  const bool unnamed = step.trouble.kind == Trouble::Kind::user && step.leg == Leg::target;
  step.pull_deadline =
      *step.trouble_since + (unnamed ? policy_.status_patience : patience_with(step.trouble, policy_));
  return {};
}

Switches::Outcome Switches::check(Container& container, Time now) {
  auto& step = std::get<Switching>(container.state);
  if (step.mute_until && container.glue == 0 && now >= std::min(*step.mute_until, step.deadline)) {
    // If the request's deadline came first, the node may just have been slow.
    const bool long_enough = now >= *step.mute_until;
    const std::string why = "a container of this image runs, but glue in it does not answer";
    step.trouble = {Trouble::Kind::unknown, why, false, long_enough};
    return failed(wire::Fault::infrastructure, why);
  }
  if (now >= step.deadline) {
    const bool silent = step.trouble.kind == Trouble::Kind::none;
    const std::string why = silent ? std::string("the node does not say why") : step.trouble.message;
    // If the node started another container meanwhile, the node is well, and this image is the reason why it
    // says nothing. (podman opens an image's /etc/passwd, and waits there for ever if that is a FIFO.) No job
    // is held for this, since a large image may just take that long.
    if (silent && container.glue == 0 && step.leg == Leg::target && step.answered &&
        health_.switched_since(step.answered_at))
      step.trouble = {Trouble::Kind::unknown, why, false, false};
    const bool untouched = (step.leg == Leg::calm || step.leg == Leg::size) && container.glue != 0;
    return failed(wire::Fault::infrastructure,
                  fmt::format("no payload container had the image within {} seconds: {}",
                              policy_.bind_deadline.count(), why),
                  untouched ? State::idle : State::broken);
  }
  if (step.pull_deadline && now >= *step.pull_deadline) {
    const std::string why = step.trouble.message;
    if (kube::is_by_id(step.reference)) {
      leave_id(container, why, now);
      return {};
    }
    return failed(wire::Fault::infrastructure, why);
  }
  const bool calm = container.glue != 0 && container.calm_at && now >= *container.calm_at;
  if (calm && step.leg == Leg::calm) {
    container.calm_at.reset();
    next_step(container, now);
    return {};
  }
  if (calm && step.alike) {
    container.calm_at.reset();
    return judge(container, now);
  }
  if (calm && container.instance.empty()) {
    Outcome outcome = judge(container, now);
    // If the status has not come by then, the agent no longer waits for it.
    if (container.calm_at && now >= *container.calm_at) container.calm_at.reset();
    return outcome;
  }
  if (step.unclear_until && now >= *step.unclear_until) {
    // The status shows another image name than the pod has, so it proves nothing. But the status of the
    // pilot's own container proves the pilot's own image. From that image the next step can be proven by
    // goodbye.
    step.goodbye_needed = true;
    // No job waits for this image, so it is asked for no more.
    if (step.leg == Leg::check && !step.waiting) step.asked = Image::home();
    next_step(container, now);
  }
  return {};
}

Time Switches::next_deadline(const Container& container) {
  const auto& step = std::get<Switching>(container.state);
  Time first = step.deadline;
  for (const auto& time : {step.pull_deadline, step.unclear_until, step.mute_until})
    if (time) first = std::min(first, *time);
  const bool waits_for_calm = step.leg == Leg::calm || step.alike ||
                              (step.proof == Proof::status && container.instance.empty() &&
                               (step.answered || step.leg == Leg::check));
  if (waits_for_calm && container.glue != 0 && container.calm_at) first = std::min(first, *container.calm_at);
  return first;
}

// The container runs what this step asked for.
bool Switches::arrived(Container& container, Time now) {
  auto& step = std::get<Switching>(container.state);
  container.be_fresh();
  if (step.leg != Leg::check && is_plain(step.reference)) container.ran.insert(step.reference);
  if (kube::is_by_id(step.reference)) references_.id_worked();
  container.proven = container.told.asked;
  if (step.attempt != 0) health_.switched(now);
  pulls_.seen(container.proven);
  health_.doubts.drop(container.proven);
  if (step.same_image || step.leg == Leg::check) container.shown_before.clear();
  if (step.leg == Leg::home) actions_.note("event=home container={}", container.name);
  if (container.proven == step.asked) {
    await_digest(container, now);
    return true;
  }
  // The switch is half-way: it leads over the pilot's own image.
  step.before = container.glue;
  if (step.goodbye_needed && !container.settled())
    step.leg = Leg::calm;
  else
    next_step(container, now);
  return false;
}

void Switches::await_digest(Container& container, Time now) const {
  const auto until_told = container.instance.empty() ? policy_.calm : std::chrono::seconds(0);
  container.learning_until = now + until_told + 3 * policy_.status_patience;
}

Check Switches::look_at(Container& container, Time now) {
  if (!container.learning_until || !container.status || container.glue == 0) return Check::unknown;
  const ContainerStatus& status = *container.status;
  if (!shows_instance(container, status, now)) return Check::unknown;
  container.learning_until.reset();
  container.shown = status.image_id;
  if (references_.fits(container.proven, status)) return Check::as_told;
  const Check found = agent::check(container, status, references_.home());
  if (found == Check::as_told) learn(container.proven, container.told.admitted, status);
  if (found != Check::doubtful) return found;
  actions_.warn("event=doubtful container={} image={} shown={}", container.name, word(container.proven),
                word(status.image_id));
  if (shows_home(status, references_.home())) references_.looked_like_home(container.proven);
  container.spoiled = true;
  container.unsettle(now + policy_.calm);
  return found;
}

void Switches::learn(const Image& image, const std::string& admitted, const ContainerStatus& status) {
  const std::string digest = references_.learn(image, admitted, status);
  if (!digest.empty()) actions_.note("event=digest image={} digest={}", word(image), digest);
}

void Switches::learn_earlier(Container& container) {
  if (!container.unlearnt || !is_of(*container.status, container.unlearnt->instance)) return;
  const auto earlier = *std::exchange(container.unlearnt, std::nullopt);
  if (shows_image(*container.status, earlier.admitted))
    learn(earlier.proven, earlier.admitted, *container.status);
}

}  // namespace glidepod::agent
