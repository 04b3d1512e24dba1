// Glues that connect and go, and what the pod's status says their containers run.

#include "pilot-agent/core/core.hpp"
#include "pilot-agent/core/words.hpp"

namespace glidepod::agent {

void Core::on_hello(GlueId glue, const std::string& name, const std::string& instance, Time now, bool empty) {
  Container* container = containers_.find(name);
  if (container == nullptr && !containers_.names_given() && !containers_.known())
    container = &containers_.add(name);
  if (container == nullptr) {
    actions_.warn("event=refused container={} reason=\"not a payload container of this pod\"", word(name));
    return actions_.add(DropGlue{glue});
  }
  if (const auto wrong = containers_.stranger(*container, instance); !wrong.empty()) {
    actions_.warn("event=refused container={} id={} reason={}", word(name), word(instance.substr(0, 12)),
                  quoted(wrong));
    return actions_.add(DropGlue{glue});
  }
  // One container has one glue. So an older connection is dead, even if its end has not been seen.
  if (container->glue != 0) {
    actions_.add(DropGlue{container->glue});
    part(*container, EventKind::lost, now);
  }
  // This is not the container that the agent saw last.
  if (!instance.empty() && !container->last_instance.empty() && instance != container->last_instance)
    container->be_fresh();
  leftovers_.ended(container->name);
  container->glue = glue;
  container->instance = container->last_instance = instance;
  container->stopped = false;
  container->empty = empty;
  container->since = now;
  container->shown_running = false;
  container->shown_before = std::exchange(container->shown, {});
  actions_.note("event=hello container={} state={} id={}", container->name, name_of(container->kind()),
                word(instance.substr(0, 12)));
  if (queue_.stage() == Stage::finishing) return actions_.add(FinishGlue{glue});
  greet(*container, now);
  settle(now);
}

void Core::greet(Container& container, Time now) {
  if (container.calm_at) container.unsettle(now + policy_.calm);
  if (container.kind() == State::switching)
    return follow(container, switches_.hello(container, now), EventKind::hello, now);
  if (container.inherited) return begin(container, Image::home(), std::nullopt, EventKind::hello, now);
  if (container.kind() == State::broken) return check_again(container, EventKind::hello, now);
  // No patch is on its way, or the pod is not known yet. So the container runs the same image again, on a
  // fresh file system.
  if (container.settled() || !containers_.known()) {
    const auto* absent = std::get_if<Absent>(&container.state);
    const bool first = absent != nullptr && absent->unborn;
    container.be_fresh();
    containers_.become(container, Idle{}, EventKind::hello);
    if (!first) return;
    births_.born(container, now);
    return look_at(container, now);
  }
  check_again(container, EventKind::hello, now);
}

void Core::on_goodbye(GlueId glue, Time now) {
  Container* container = containers_.of_glue(glue);
  if (container == nullptr) return;
  container->stopped = true;
  // Glue may still say that it has cleared, or how the job ended.
  if (container->kind() == State::clearing) return;
  if (Job* job = container->job()) {
    if (!job->goodbye()) job->end.goodbye_at = now;
    if (container->kind() == State::running && job->request.client != 0)
      actions_.add(Vacate{job->request.client});
    const auto* draining = std::get_if<Draining>(&container->state);
    if (draining == nullptr || !draining->ended) return;
  } else {
    actions_.note("event=goodbye container={} state={}", container->name, name_of(container->kind()));
  }
  part(*container, EventKind::goodbye, now);
  settle(now);
}

void Core::on_glue_lost(GlueId glue, Time now) {
  Container* container = containers_.of_glue(glue);
  if (container == nullptr) return;  // this glue said goodbye, or another one replaced it
  const bool expected = container->stopped;
  if (!expected)
    actions_.warn("event=glue_lost container={} state={}", container->name, name_of(container->kind()));
  part(*container, expected ? EventKind::goodbye : EventKind::lost, now);
  settle(now);
}

// The container's glue is gone.
void Core::part(Container& container, EventKind event, Time now) {
  container.glue = 0;
  container.instance.clear();
  container.learning_until.reset();
  resizes_.glue_gone(container.name);
  if (queue_.stage() == Stage::finishing) return;
  switch (container.kind()) {
    case State::absent:
    case State::broken:
      return;
    case State::running:
    case State::draining:
      return lose_job(container, event, now);
    case State::clearing:
      leftovers_.glue_gone(container);
      // The kubelet would start the same image string again, each time after a longer pause.
      if (event == EventKind::lost) return begin(container, Image::home(), std::nullopt, event, now);
      break;
    case State::switching:
      if (std::get<Switching>(container.state).leg != Switching::Leg::size)
        return follow(container, switches_.glue_gone(container, event, now), event, now);
      resizes_.leave(container.name, now);
      return switches_.next_step(container, now);
    case State::asking:
      // If the registry answers meanwhile, the answer finds the request in the queue.
      queue_.put_back(std::move(std::get<Asking>(container.state).waiting));
      break;
    case State::idle:
    case State::reserved:
      break;
  }
  // This agent did not end the container. Somebody else may have changed its image.
  if (event == EventKind::goodbye) container.unsettle(now + policy_.calm);
  containers_.become(container, Absent{now + policy_.calm}, event);
}

// A job that has run in another image than its own must not go on, nor is the container used like that.
void Core::look_at(Container& container, Time now) {
  if (switches_.look_at(container, now) != Check::doubtful) return;
  if (container.kind() == State::reserved) return containers_.become(container, Idle{}, EventKind::status);
  if (auto* asking = std::get_if<Asking>(&container.state)) {
    queue_.put_back(std::move(asking->waiting));
    return containers_.become(container, Idle{}, EventKind::status);
  }
  Job* job = container.job();
  if (job == nullptr) return;
  if (job->request.client != 0)
    answers_.fail(job->request, wire::Fault::infrastructure,
                  "the payload container runs another image than the job's");
  job->request.client = 0;
  if (container.kind() == State::running) kill_job(container, EventKind::status, now);
}

}  // namespace glidepod::agent
