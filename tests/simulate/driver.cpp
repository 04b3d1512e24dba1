#include "tests/simulate/driver.hpp"

#include <algorithm>

#include "tests/simulate/world.hpp"

namespace glidepod::simulate {

using namespace agent;

namespace {
constexpr std::chrono::seconds k_leave_time{20};
}

void Driver::start() {
  if (up() || end_ != End::none) return;
  ++life_;
  Policy policy = world_.weather.policy;
  policy.nonce_prefix = "g" + std::to_string(life_);
  std::vector<std::string> names;
  if (world_.weather.names_given)
    for (const Box& box : world_.kubelet.boxes()) names.push_back(box.name);
  core_.emplace(policy, names);
  core_->observe([this](const Container& container, const Transition& transition) {
    world_.coverage.count(transition);
    sizing_since_.erase(container.name);
    if (transition.from != transition.to)
      world_.say("core: {} {} -> {} by {}", container.name, name_of(transition.from), name_of(transition.to),
                 name_of(transition.event));
    if (!allowed(transition))
      world_.properties.broken("only transitions of the table happen",
                               fmt::format("{} by {} to {}", name_of(transition.from),
                                           name_of(transition.event), name_of(transition.to)));
  });
  core_->observe_pulls([this](const std::string& image, const PullTransition& transition) {
    world_.coverage.count(transition);
    const auto table = pull_transitions();
    if (std::ranges::find(table, transition) == table.end())
      world_.properties.broken("only transitions of the table happen",
                               fmt::format("pull of {}: {} by {} to {}", image, name_of(transition.from),
                                           name_of(transition.event), name_of(transition.to)));
  });
  world_.say("agent: starts{}", was_before_ ? ", as one did before it" : "");
  core_->on_earlier_users(users_);
  get_first_pod();
  for (Box& box : world_.kubelet.boxes())
    if (box.glue) box.glue->agent_up();
}

void Driver::die() {
  if (!up()) return;
  world_.say("agent: is killed");
  ++life_;
  core_.reset();
  world_.properties.agent_died();
  was_before_ = true;
  pumping_ = given_up_ = draining_ = withdrawn_ = false;
  leaving_ = Leaving::no;
  version_.clear();
  seen_.reset();
  once_.clear();
  patches_.clear();
  resize_ = 0;
  sizing_since_.clear();
  free_since_.clear();
  looked_at_ = {};
  watch_ = 0;
  watch_failures_ = 0;
  world_.api.unwatch();
  timer_due_.reset();
  ++timer_;
  for (const auto& [id, link] : std::exchange(links_, {})) {
    world_.clock.after(world_.takes(0, 20), [this, id = id, box = link.box] {
      if (auto& glue = world_.kubelet.box(box).glue) glue->agent_gone(id);
    });
  }
  for (const auto& [id, asked] : std::exchange(clients_, {})) world_.starters.agent_gone(id);
}

void Driver::tell(const Event& what) {
  if (!up()) return;
  check_free();
  what(*core_, world_.now());
  pump();
}

// Who has waited in the queue since the last look, though a container was free at both.
void Driver::check_free() {
  constexpr std::chrono::seconds k_pause{5}, k_bound{120};
  if (world_.now() < looked_at_ + k_pause || leaving_ != Leaving::no) return;
  // Who waits for a size waits for what the kubelet does; and what a user has left is waited for.
  if (world_.weather.policy.resize || world_.weather.glue_wedged) return;
  looked_at_ = world_.now();
  const auto before = std::exchange(free_since_, {});
  const Snapshot snapshot = core_->snapshot();
  const auto is_idle = [](const Snapshot::One& one) { return one.state == State::idle; };
  if (snapshot.waiting.empty() || std::ranges::none_of(snapshot.containers, is_idle)) return;
  for (const ClientId id : world_.starters.waiting()) {
    const Client& client = world_.starters.client(id);
    const Request& request = client.request;
    const auto is_it = [&](const Snapshot::Queued& queued) {
      return !queued.pulling && queued.job == request.job && queued.image == client.image() &&
             queued.owner == request.owner;
    };
    if (request.any_image || !serves(id) || std::ranges::none_of(snapshot.waiting, is_it)) continue;
    const auto found = before.find(id);
    const Time since = found == before.end() ? world_.now() : found->second;
    free_since_[id] = since;
    if (world_.now() > since + k_bound)
      world_.properties.broken("nobody waits while a container is free", std::to_string(id));
  }
}

void Driver::drain() {
  if (!up()) return;
  world_.say("agent: is about to end");
  draining_ = true;
  tell([](Core& core, Time now) { core.drain(now); });
  for (const ClientId id : world_.starters.waiting())
    if (serves(id) && world_.starters.client(id).launches == 0)
      world_.properties.broken("who has not begun is refused when the pilot ends", std::to_string(id));
}

void Driver::withdraw() {
  if (!up()) return;
  world_.say("agent: an operator has drained its pod");
  withdrawn_ = true;
  tell([](Core& core, Time) { core.withdraw(); });
  for (const ClientId id : world_.starters.waiting())
    if (serves(id) && world_.starters.client(id).launches == 0 && world_.starters.client(id).outer == 0)
      world_.properties.broken("who has not begun is refused when the pilot is drained", std::to_string(id));
}

void Driver::leave() {
  world_.say("agent: its command has ended");
  leaving_ = Leaving::home;
  world_.clock.after(k_leave_time, mine([this] {
                       if (leaving_ == Leaving::home) go_on_leaving(false);
                     }));
  tell([](Core& core, Time now) { core.call_home(now); });
}

void Driver::go_on_leaving(bool in_time) {
  const bool home = leaving_ == Leaving::home;
  if (in_time && !(home ? core_->containers().missing().empty() : !core_->containers().ending())) return;
  const auto left = home ? core_->containers().missing() : core_->containers().unended();
  if (!left.empty()) {
    world_.say("agent: fails the pod for {}", left.front());
    end_ = End::failed;
    return die();
  }
  if (!home) {
    world_.say("agent: has ended");
    end_ = End::well;
    return die();
  }
  leaving_ = Leaving::finish;
  world_.clock.after(k_leave_time, mine([this] {
                       if (leaving_ == Leaving::finish) go_on_leaving(false);
                     }));
  tell([](Core& core, Time now) { core.finish(now); });
}

GlueId Driver::connect(int box, std::uint64_t instance) {
  if (!up()) return 0;
  const GlueId id = ++last_id_;
  links_[id] = {box, instance, world_.now(), world_.now()};
  return id;
}

void Driver::from_glue(GlueId glue, std::string_view event, Event what) {
  const auto link = links_.find(glue);
  if (link == links_.end()) return;
  SteadyTime& last = link->second.to_agent;
  last = std::max(last, world_.now() + world_.takes(0, 20));
  world_.clock.at(last, [this, glue, event, what = std::move(what)] {
    const auto from = links_.find(glue);
    if (from == links_.end()) return;
    world_.say("agent: {} of glue {} of {}", event, glue, world_.kubelet.box(from->second.box).name);
    tell(what);
  });
}

void Driver::hang_up(GlueId glue) {
  const auto link = links_.find(glue);
  if (link == links_.end()) return;
  world_.clock.at(std::max(link->second.to_agent, world_.now() + world_.takes(0, 20)),
                  [this, glue] { close_glue(glue); });
}

void Driver::close_glue(GlueId glue) {
  if (links_.erase(glue) == 0) return;
  world_.say("agent: glue {} hung up", glue);
  tell([glue](Core& core, Time now) { core.on_glue_lost(glue, now); });
}

void Driver::to_glue(GlueId glue, std::function<void(Glue&)> what) {
  Link& link = links_.at(glue);
  link.to_glue = std::max(link.to_glue, world_.now() + world_.takes(0, 10));
  world_.clock.at(link.to_glue, [this, glue, box = link.box, instance = link.instance,
                                 what = std::move(what)] {
    Glue* there = world_.kubelet.box(box).glue.get();
    if (there && there->instance() == instance && there->alive() && !there->wedged() && there->link() == glue)
      what(*there);
  });
}

void Driver::bind(Request request) {
  clients_[request.client] = true;
  world_.say("agent: client {} asks: {} {} of {} uid {}", request.client,
             request.verb == wire::Verb::test  ? "test"
             : request.verb == wire::Verb::run ? "run"
                                               : "exec",
             request.any_image ? "(any image)" : request.asked.name(), request.owner, request.uid);
  tell([request](Core& core, Time now) { core.on_bind(request, now); });
}

void Driver::announce(Request job) {
  world_.say("agent: job {} of {} uid {} is announced: {}", job.job, job.owner, job.uid, job.asked.name());
  tell([job](Core& core, Time now) { core.on_announce(job, now); });
}

void Driver::client_gone(ClientId client) {
  if (clients_.erase(client) == 0) return;
  world_.say("agent: client {} is gone", client);
  tell([client](Core& core, Time now) { core.on_client_gone(client, now); });
}

void Driver::pump() {
  if (pumping_) return;
  pumping_ = true;
  for (auto actions = core_->take_actions(); !actions.empty(); actions = core_->take_actions()) {
    users_ = core_->users();
    for (const Action& action : actions) std::visit([this](const auto& a) { run(a); }, action);
  }
  pumping_ = false;
  if (leaving_ != Leaving::no) go_on_leaving(true);
  if (!up()) return;
  adjust_watch();
  adjust_timer();
  if (world_.weather.policy.resize) check_sizing();
}

// Who waits for a size, and for how long.
void Driver::check_sizing() {
  const auto before = std::exchange(sizing_since_, {});
  for (const agent::Container& one : core_->containers()) {
    const auto* step = std::get_if<agent::Switching>(&one.state);
    if (step == nullptr || step->leg != agent::Switching::Leg::size) continue;
    const auto found = before.find(one.name);
    const Time since = found == before.end() ? world_.now() : found->second;
    sizing_since_[one.name] = since;
    if (world_.now() > since + world_.weather.policy.resize_patience + std::chrono::seconds(1))
      world_.properties.broken("a job waits for its size no longer than it may", one.name);
  }
}

void Driver::run(const Patch& action) {
  world_.say("core: Patch {} {} to {}", action.attempt, action.container, action.image);
  if (world_.kubelet.find(action.container) == nullptr)
    return world_.properties.broken("actions refer to what there is", action.container);
  world_.properties.patched(*world_.kubelet.find(action.container), action.image);
  world_.tempt();
  patches_[action.container] = action.attempt;
  change({action});
}

void Driver::run(const Resize& action) {
  for (const kube::SizeChange& change : action.changes) {
    const Box* box = world_.kubelet.find(change.container);
    if (box == nullptr) return world_.properties.broken("actions refer to what there is", change.container);
    world_.properties.asked(*box, change.size);
  }
  world_.say("core: Resize {} of {} containers", action.attempt, action.changes.size());
  world_.tempt();
  resize_ = action.attempt;
  resize({action});
}

void Driver::run(const Want& action) {
  world_.say("core: Want {}", action.text);
  exchange({.wanted = action.text}, action.deadline, 1, false, [this](const Api::Answer& answer) {
    const auto* failure = std::get_if<kube::Failure>(&answer);
    world_.say("agent: the answer to Want: {}", failure ? failure->to_string() : "taken");
    tell([&](Core& core, Time now) {
      if (failure)
        core.on_wanted(failure->to_error(), now);
      else
        core.on_wanted({}, now);
    });
  });
}

void Driver::run(const Launch& action) {
  world_.say("core: Launch of job {} for client {} by glue {}", action.job, action.client, action.glue);
  if (!clients_.contains(action.client) || !links_.contains(action.glue))
    return world_.properties.broken("actions refer to what there is",
                                    fmt::format("Launch {} {}", action.client, action.glue));
  if (draining_) world_.properties.broken("a pilot that ends begins nothing", std::to_string(action.client));
  if (withdrawn_ && world_.starters.client(action.client).outer == 0)
    world_.properties.broken("a drained pilot begins no job of HTCondor's", std::to_string(action.client));
  world_.properties.launch(action.client);
  world_.tempt();
  to_glue(action.glue,
          [job = action.job, client = action.client](Glue& glue) { glue.take_launch(job, client); });
}

void Driver::run(const Clear& action) {
  world_.say("core: Clear what user {} has left, as job {}, by glue {}", action.uid, action.job, action.glue);
  if (!links_.contains(action.glue))
    return world_.properties.broken("actions refer to what there is", fmt::format("Clear {}", action.glue));
  to_glue(action.glue, [job = action.job, uid = action.uid](Glue& glue) { glue.take_clear(job, uid); });
}

void Driver::run(const AskImage& action) {
  world_.say("core: AskImage {} for client {}", action.image, action.client);
  const ClientId client = action.client;
  const Milliseconds left =
      std::max(std::chrono::ceil<Milliseconds>(action.deadline - world_.now()), Milliseconds(0));
  const bool silent = world_.fault(200), refused = !silent && world_.fault(100);
  const auto content = world_.images.in_registry(action.image);
  const bool nothing = content && world_.images.content(*content).runs_nothing;
  if (refused) world_.properties.launch_failed(client);
  if (silent) world_.properties.registry_silent();
  // A deadline is told a little late.
  world_.clock.after(silent ? left + Milliseconds(world_.random.aside(4).between(0, 20))
                            : std::min(left, world_.takes(10, 3000)),
                     mine([this, client, silent, refused, nothing] {
                       if (!clients_.contains(client)) return;
                       world_.say("agent: the registry {} client {}",
                                  silent    ? "is silent to"
                                  : refused ? "refuses"
                                            : "answers",
                                  client);
                       if (silent || refused)
                         tell([&](Core& core, Time now) {
                           core.on_image_unknown(client,
                                                 refused ? wire::Fault::user : wire::Fault::infrastructure,
                                                 "registry", now);
                         });
                       else
                         tell([&](Core& core, Time now) {
                           using Words = std::vector<std::string>;
                           core.on_image_known(client, {nothing ? Words() : Words{"/run"}, {}}, now);
                         });
                     }));
}

void Driver::run(const SignalJob& action) {
  world_.say("core: signal {} to job {} by glue {}", action.number, action.job, action.glue);
  if (!links_.contains(action.glue))
    return world_.properties.broken("actions refer to what there is", "SignalJob");
  to_glue(action.glue,
          [job = action.job, number = action.number](Glue& glue) { glue.take_signal(job, number); });
}

void Driver::run(const Answer& action) {
  world_.say("core: Answer to client {}: {}", action.client, action.status.to_string());
  if (!clients_.contains(action.client))
    return world_.properties.broken("actions refer to what there is",
                                    fmt::format("Answer {}", action.client));
  world_.properties.answered(action.client, action.status);
  world_.starters.answered(action.client, action.status);
}

void Driver::run(const Fail& action) {
  world_.say("core: Fail of client {}, fault of {}: {}", action.client,
             action.fault == wire::Fault::user ? "user" : "infrastructure", action.message);
  if (!clients_.contains(action.client))
    return world_.properties.broken("actions refer to what there is", fmt::format("Fail {}", action.client));
  world_.properties.failed(action.client, action.fault, action.message);
  world_.starters.failed(action.client);
}

// A starter that is slow to act: nothing more is to come of it.
void Driver::run(const Vacate& action) {
  world_.say("core: Vacate of client {}", action.client);
  if (!clients_.contains(action.client))
    world_.properties.broken("actions refer to what there is", fmt::format("Vacate {}", action.client));
}

// To the job it is an answer: what is told must be how it ended.
void Driver::run(const Hold& action) {
  world_.say("core: Hold of client {}: {}", action.client, action.reason);
  if (clients_.contains(action.client)) world_.starters.client(action.client).held = true;
  run(Answer{action.client, action.status});
}

void Driver::run(const FinishGlue& action) {
  if (!links_.contains(action.glue))
    return world_.properties.broken("actions refer to what there is", "FinishGlue");
  to_glue(action.glue, [](Glue& glue) { glue.take_finish(); });
}

void Driver::run(const DropGlue& action) {
  world_.say("core: drops glue {}", action.glue);
  const auto link = links_.find(action.glue);
  if (link == links_.end()) return world_.properties.broken("actions refer to what there is", "DropGlue");
  const int box = link->second.box;
  links_.erase(link);
  world_.clock.after(world_.takes(0, 20), [this, id = action.glue, box] {
    if (auto& glue = world_.kubelet.box(box).glue) glue->agent_gone(id);
  });
}

void Driver::run(const KillGlue& action) {
  world_.say("core: kills glue {}", action.glue);
  const auto link = links_.find(action.glue);
  if (link == links_.end()) return world_.properties.broken("actions refer to what there is", "KillGlue");
  const Link was = link->second;
  links_.erase(link);
  world_.clock.after(world_.takes(0, 5), [this, was] {
    auto& glue = world_.kubelet.box(was.box).glue;
    if (glue && glue->instance() == was.instance) glue->killed({"Error", "", 137, 0, {}});
  });
}

void Driver::run(const SendBeat& action) {
  if (!links_.contains(action.glue))
    return world_.properties.broken("actions refer to what there is", "SendBeat");
  to_glue(action.glue, [number = action.number](Glue& glue) { glue.take_beat(number); });
}

void Driver::run(const GiveUp& action) {
  world_.say("core: gives up: {}", action.reason);
  world_.properties.given_up();
  given_up_ = true;
}

void Driver::run(const Note& action) {
  world_.say("core: {}", action.text);
  world_.properties.noted(action.text);
}

}  // namespace glidepod::simulate
