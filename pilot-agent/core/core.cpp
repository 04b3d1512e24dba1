#include "pilot-agent/core/core.hpp"

#include <algorithm>
#include <csignal>

#include "lib/kube/failure.hpp"
#include "lib/kube/image_reference.hpp"
#include "pilot-agent/core/proof.hpp"
#include "pilot-agent/core/words.hpp"

namespace glidepod::agent {
namespace {
constexpr std::string_view k_given_up =
    "this pilot takes no more jobs (event=given_up in its log has the reason); HTCondor starts the job again "
    "on another pilot";
}  // namespace

Core::Core(Policy policy, const std::vector<std::string>& containers)
    : policy_(std::move(policy)), containers_(actions_, containers) {}

// Runs after each event: serves the queue, and makes the test switch that a new pilot owes.
void Core::settle(Time now) {
  if (queue_.stage() == Stage::finishing) return;
  if (Container* container = switches_.for_test(containers_, now))
    begin(*container, Image::home(), std::nullopt, EventKind::pod, now);
  leftovers_.clear(now);
  fail_unpulled(now);
  if (const auto end = resizes_.go_on(now)) end_sizing(*end, EventKind::answered, now);
  queue_.serve([&](Waiting& waiting) { return place(waiting, now); });
  renew(now);
  beside_.ask(queue_.stage() == Stage::open ? spares_.announced.names() : Beside::Names(), now);
  if (auto why = health_.too_many_failures()) give_up(*std::move(why));
}

// Makes idle containers ready: for announced jobs and, while no job waits for anything, for likely ones.
void Core::renew(Time now) {
  if (queue_.stage() != Stage::open || health_.given_up() || !containers_.known()) return;
  const auto begin_spare = [&](std::string_view event, const Spares::Next& next) {
    actions_.note("event={} container={} image={}", event, next.container->name, word(next.image));
    begin(*next.container, next.image, std::nullopt, EventKind::likely, now);
    auto& step = std::get<Switching>(next.container->state);
    step.spare = true;
    step.announced = event == "announced";
  };
  const auto may_have = [&](const Image& image) {
    return health_.doubts.waits(image, now) == nullptr && beside_.may_switch(image, now);
  };
  // While a container is being resized, the idle ones are resized too.
  while (!resizes_.under_way()) {
    const auto next = spares_.next_announced(now, may_have);
    if (!next) break;
    begin_spare("announced", *next);
  }
  if (policy_.spares == 0 || !queue_.empty()) return;
  while (const auto next = spares_.next(now)) begin_spare("renew", *next);
}

void Core::fail_unpulled(Time now) {
  for (const Image& image : beside_.fail_unpulled(now)) spares_.failed(image, now);
}

void Core::give_up(std::string why) {
  if (!health_.give_up()) return;
  actions_.add(GiveUp{std::move(why)});
  for (const Waiting& waiting : queue_.take_all())
    answers_.fail(waiting.request, wire::Fault::infrastructure, std::string(k_given_up));
}

std::string_view Core::refusal(const Request& request) const {
  return health_.given_up() ? k_given_up : queue_.refusal(request);
}

void Core::on_bind(Request request, Time now) {
  if (const auto why = refusal(request); !why.empty())
    return answers_.fail(request, wire::Fault::infrastructure, std::string(why));
  if (request.outer != 0)
    if (const auto room = containers_.check_inner(request, queue_.size()); !room)
      return answers_.fail(request, wire::Fault::infrastructure, room.error().message());
  containers_.free_reservations(request);
  for (Container& container : containers_)
    if (container.kept && container.kept->uid == request.uid) container.kept.reset();
  if (const auto why = spares_.announced.asks(request, now))
    answers_.fail(request, wire::Fault::user, *why);
  else
    queue_.add(std::move(request), now);
  settle(now);
}

void Core::on_announce(Request job, Time now) {
  spares_.announce(std::move(job), now);
  settle(now);
}

void Core::on_client_gone(ClientId client, Time now) {
  visits_.client_gone(client);
  answers_.lost_jobs.drop(client);
  queue_.drop(client, EventKind::gone);
  if (Container* container = containers_.of_client(client)) {
    container->job()->request.client = 0;
    if (container->kind() == State::running) {
      actions_.note("event=abandoned job={} container={} action=kill", word(container->job()->request.job),
                    container->name);
      kill_job(*container, EventKind::gone, now);
    }
  }
  settle(now);
}

void Core::on_enter(const Visit& visit) {
  if (queue_.stage() == Stage::finishing) return visits_.refuse(visit, "the pilot is ending");
  const Container* container = containers_.to_visit(visit);
  if (container == nullptr) return visits_.refuse(visit, "no job of this user runs in that folder");
  visits_.open(visit, *container);
}

void Core::on_client_signal(ClientId client, int number, Time now) {
  if (Container* container = containers_.of_client(client)) {
    // SIGKILL cannot be refused, so the job's end gets a deadline.
    if (number == SIGKILL && container->kind() == State::running)
      return kill_job(*container, EventKind::gone, now);
    return signal_job(*container, number, now);
  }
  // There is no job yet: a signal that ends a process ends the request, as if the job had just begun.
  if (!ends_a_process(number)) return;
  // The job has run. The core is finding out how it ended, and will tell the client.
  if (answers_.lost_jobs.has(client)) return;
  if (queue_.find(client) != nullptr) actions_.add(Answer{client, ExitStatus::signaled(number)});
  on_client_gone(client, now);
}

void Core::take(Container& container, const kube::ContainerStatus& status) {
  container.status = status;
  // Glue ends with success only when the pilot is done. If a container ended with success before that, a
  // killed runtime has lost how it really ended. With restartPolicy OnFailure the kubelet takes the success
  // for final, and reports nothing of this pod any more.
  const bool ended_well = status.state == kube::ContainerStatus::State::terminated && status.terminated &&
                          status.terminated->exit_code == 0 && status.terminated->signal == 0;
  if (ended_well && !container.sidecar && queue_.stage() != Stage::finishing)
    give_up(
        fmt::format("the node has lost container {}, and the kubelet reports nothing of this pod any more",
                    container.name));
}

void Core::on_first_pod(const kube::Pod& pod, Earlier agents, Time now) {
  if (containers_.known() || pod.containers.empty()) return;
  const auto credentials = pod.pull_secrets ? Credentials::some : Credentials::none;
  beside_.pulls.begin(pod.wanted_images, credentials);
  switches_.begin(credentials);
  references_.begin(pod);
  spares_.told(pod);
  const kube::ContainerStatus* own = pod.status(pod.pilot()->name);
  const bool fresh = agents == Earlier::none && (own == nullptr || own->restart_count == 0);
  containers_.begin(pod);
  resizes_.begin(pod, fresh ? std::nullopt : std::optional(now + policy_.calm));
  actions_.note("event=pod containers={} restarted={}", containers_.size(), fresh ? "no" : "yes");
  for (Container& container : containers_) {
    if (const kube::ContainerSpec* spec = pod.container(container.name)) {
      container.sidecar = spec->sidecar;
      container.told.reference = container.told.admitted = spec->image;
      if (!names_home(spec->image, references_.home()))
        container.told.asked = Image(kube::full_name_of(spec->image));
    }
    if (const kube::ContainerStatus* status = pod.status(container.name)) take(container, *status);
    if (fresh) {
      if (births_.expect(container, now)) look_at(container, now);
      continue;
    }
    container.inherited = true;
    container.unsettle(now + policy_.calm);
    if (container.kind() == State::idle || container.kind() == State::absent)
      begin(container, Image::home(), std::nullopt, EventKind::pod, now);
  }
  leftovers_.begin(now);
  settle(now);
}

void Core::on_pod(const kube::Pod& pod, Time now) {
  if (!containers_.is_news(pod)) return;
  references_.see(pod);
  resizes_.see(pod);
  beside_.pulls.told(pod.pulled_images, now);
  spares_.told(pod);
  for (Container& container : containers_) {
    const kube::ContainerStatus* status = pod.status(container.name);
    if (status == nullptr) continue;
    take(container, *status);
    const bool running = status->state == kube::ContainerStatus::State::running;
    if (container.glue != 0 && (container.instance.empty() ? running : is_of(*status, container.instance)))
      container.shown_running = true;
    switches_.learn_earlier(container);
    const auto* step = std::get_if<Switching>(&container.state);
    if (step != nullptr && step->leg != Switching::Leg::size)
      follow(container, switches_.judge(container, now), EventKind::status, now);
    else if (births_.miscarried(container))
      begin(container, Image::home(), std::nullopt, EventKind::status, now);
    else
      look_at(container, now);
  }
  check_sizing(EventKind::status, now);
  answers_.tell_lost(answers_.lost_jobs.take_told(pod), now);
  settle(now);
}

void Core::on_patched(std::uint64_t attempt, const Result<kube::Pod>& answer, Time now) {
  Container* container = containers_.of_patch(attempt);
  if (container == nullptr) return;
  if (answer) {
    follow(*container, switches_.patched(*container, *answer, now), EventKind::answered, now);
    on_pod(*answer, now);
  } else {
    const auto failure = kube::Failure::of(answer.error());
    follow(*container, switches_.not_patched(*container, failure, now), EventKind::refused, now);
  }
  // Where the status came before the answer, on_pod() takes no notice of it; it may have freed the container.
  settle(now);
}

void Core::on_wanted(const Result<void>& answer, Time now) {
  if (answer)
    beside_.pulls.patched();
  else
    beside_.pulls.refused(kube::Failure::of(answer.error()), now);
  settle(now);
}

void Core::drain(Time now) {
  queue_.close(Stage::draining);
  settle(now);
}

void Core::withdraw() {
  queue_.close(Stage::withdrawn);
}

void Core::call_home(Time now) {
  drain(now);
  for (Container& container : containers_) {
    const auto* absent = std::get_if<Absent>(&container.state);
    const auto* step = std::get_if<Switching>(&container.state);
    const bool unborn = absent != nullptr && absent->unborn;
    const bool in_trouble = step != nullptr && container.glue == 0 && step->leg == Switching::Leg::target &&
                            step->trouble.kind != Trouble::Kind::none;
    if (in_trouble) containers_.become(container, Broken{}, EventKind::time);
    if (unborn || in_trouble) begin(container, Image::home(), std::nullopt, EventKind::time, now);
  }
}

void Core::finish(Time now) {
  queue_.close(Stage::finishing);
  answers_.tell_lost(answers_.lost_jobs.take_all(), now);
  for (Container& container : containers_) {
    if (container.job() != nullptr) signal_job(container, SIGKILL, now);
    if (const auto* clearing = std::get_if<Clearing>(&container.state))
      actions_.add(SignalJob{container.glue, clearing->id, SIGKILL});
    // The kubelet would start a sidecar's glue again, and ends it when the pilot has ended.
    if (container.glue != 0 && !container.sidecar) actions_.add(FinishGlue{container.glue});
  }
}

}  // namespace glidepod::agent
