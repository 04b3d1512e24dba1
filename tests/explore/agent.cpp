// What pilot-agent/agent.cpp and lib/kube make of the core's actions and events, and what must hold.

#include <algorithm>
#include <csignal>

#include "tests/explore/model.hpp"

namespace glidepod::explore {

using agent::Core;
using kube::Failure;

void Model::line(const std::string& text) const {
  const auto ms = std::chrono::duration_cast<Milliseconds>(now_.time_since_epoch()).count() - 100'000'000;
  fmt::print("{:>6}.{:03}   {}\n", ms / 1000, ms % 1000, text);
}

void Model::broken(std::string_view property, const std::string& about) {
  say("BROKEN: {}: {}", property, about);
  if (verdict_.empty()) verdict_ = fmt::format("{}: {}", property, about);
}

Model::Client* Model::client(ClientId id) {
  const auto found =
      std::ranges::find_if(clients_, [id](const Client& one) { return one.active() && one.id == id; });
  return id == 0 || found == clients_.end() ? nullptr : &*found;
}

void Model::start_agent() {
  agent::Policy policy;
  policy.give_up_after = 0;
  policy.beat = std::chrono::hours(10'000);  // no glue is stopped here, and beats only let time pass
  policy.nonce_prefix = "g" + std::to_string(++life_);
  core_.emplace(policy);
  core_->observe([this](const agent::Container& container, const agent::Transition& transition) {
    if (transition.from != transition.to)
      say("core: {} {} -> {} by {}", container.name, name_of(transition.from), name_of(transition.to),
          name_of(transition.event));
    if (!allowed(transition)) broken("only transitions of the table happen", container.name);
  });
  core_->on_earlier_users(users_);
  first_pod_ = true;
  for (int i = 0; i < k_boxes; ++i) connect(i);
}

void Model::agent_dies() {
  say("fault: the agent is killed, and starts again");
  core_.reset();
  was_before_ = true;
  stream_.clear();
  watching_ = getting_ = false;
  late_stream_.reset();
  seen_ = 0;
  learnt_ = {};
  links_.clear();
  recent_.clear();
  std::erase_if(requests_, [](const Request& request) { return request.taken; });
  for (Request& request : requests_) request.unanswered = true;
  for (Client& one : clients_)
    if (one.active()) one.stage = Client::Stage::over;
  for (int i = 0; i < k_boxes; ++i) {
    boxes_[i].patching = 0;
    boxes_[i].astray.clear();
    boxes_[i].behind_known = false;
    if (boxes_[i].now) boxes_[i].now->shown = boxes_[i].now->known = false;
    agent_gone(i);
  }
  start_agent();
}

template <typename F>
void Model::tell(F what) {
  what(*core_, now_);
  pump();
}

template <typename T>
void Model::run(const T&) {
  broken("actions are of the kinds that this model has", "");
}

void Model::pump() {
  if (pumping_) return;
  pumping_ = true;
  for (auto actions = core_->take_actions(); !actions.empty(); actions = core_->take_actions()) {
    users_ = core_->users();
    for (const agent::Action& action : actions) std::visit([this](const auto& a) { run(a); }, action);
  }
  pumping_ = false;
  adjust_watch(0);
}

void Model::run(const agent::Patch& action) {
  say("core: Patch {} {} to {}", action.attempt, action.container, action.image);
  const auto found = std::ranges::find(boxes_, action.container, &Box::name);
  if (found == boxes_.end()) return broken("actions refer to what there is", action.container);
  Box& box = *found;
  box.now->known |= box.now->shown;
  box.now->leaving = true;
  const int index = static_cast<int>(&box - boxes_.data());
  // Nobody waits for an earlier one of this container any more, but it may still come to pass.
  std::erase_if(requests_, [index](const Request& one) { return one.box == index && one.taken; });
  for (Request& one : requests_)
    if (one.box == index) one.unanswered = true;
  requests_.insert(std::ranges::upper_bound(requests_, index, {}, &Request::box),
                   Request{action.attempt, ++last_id_, index, action.image});
  box.patching = action.attempt;
}

void Model::run(const agent::Launch& action) {
  say("core: Launch of job {} for client {} by glue {}", action.job, action.client, action.glue);
  Client* about = client(action.client);
  const int box = box_of(action.glue);
  if (about == nullptr || box < 0) return broken("actions refer to what there is", "Launch");
  if (++about->launches > 1) broken("a client gets at most one launch", about->request.job);
  if (about->request.verb == wire::Verb::test) broken("a test launches nothing", about->request.job);
  if (boxes_[box].glue.link == action.glue) take_launch(box, action.job, action.client);
}

void Model::run(const agent::Clear& action) {
  say("core: Clear what user {} has left, by glue {}", action.uid, action.glue);
  const int box = box_of(action.glue);
  if (box < 0) return broken("actions refer to what there is", "Clear");
  if (boxes_[box].glue.link == action.glue) take_clear(box, action.job, action.uid);
}

void Model::run(const agent::SignalJob& action) {
  say("core: signal {} to job {} by glue {}", action.number, action.job, action.glue);
  const int box = box_of(action.glue);
  if (box < 0) return broken("actions refer to what there is", "SignalJob");
  if (boxes_[box].glue.link == action.glue) take_signal(box, action.job, action.number);
}

void Model::run(const agent::Answer& action) {
  say("core: Answer to client {}: {}", action.client, action.status.to_string());
  Client* about = client(action.client);
  if (about == nullptr) return broken("each client is answered once", "Answer");
  const auto wrong = [&](std::string_view why) {
    broken("an answer is how the job ended",
           fmt::format("job {}: {}: {}", about->request.job, action.status.to_string(), why));
  };
  const bool by_signal = about->signalled && action.status == ExitStatus::signaled(SIGTERM);
  if (about->request.verb == wire::Verb::test) {
    if (!action.status.success() && !by_signal) wrong("a test ends well, by its signal, or fails");
  } else if (about->launches == 0) {
    if (!by_signal) wrong("it was never launched");
  } else if (!about->end) {
    wrong("its job has not ended");
  } else {
    if (*about->end != action.status) wrong("it ended with " + about->end->to_string());
    const bool asked = about->signalled && (about->after_goodbye || about->end->number == SIGTERM);
    if (about->cause == Cause::stop && !asked) wrong("its container was stopped from outside");
    if (about->cause == Cause::memory && !about->held && !asked) wrong("the kernel killed it for memory");
    if (about->cause == Cause::killed || about->cause == Cause::lost)
      wrong("its container was taken from it");
    about->well = true;
  }
  const bool tested = about->stage == Client::Stage::testing && action.status.success();
  leaves(*about);
  if (tested) about->stage = Client::Stage::tested;
}

void Model::run(const agent::Hold& action) {
  say("core: Hold of client {}: {}", action.client, action.reason);
  if (Client* about = client(action.client)) about->held = true;
  run(agent::Answer{action.client, action.status});
}

void Model::run(const agent::Fail& action) {
  say("core: Fail of client {}, fault of {}: {}", action.client,
      action.fault == wire::Fault::user ? "user" : "infrastructure", action.message);
  Client* about = client(action.client);
  if (about == nullptr) return broken("each client is answered once", "Fail: " + action.message);
  const bool blameless = content_of(about->request.asked.name()) < gone;
  // A kubelet that is one image behind tells of the trouble of the image before.
  if (action.fault == wire::Fault::user && blameless && std::ranges::none_of(boxes_, &Box::behind))
    broken("the user is at fault only for what the user can mend", action.message);
  if (!faulty_ && blameless) broken("where nothing goes wrong, no job fails", action.message);
  if (about->end && about->told && about->cause == Cause::itself && !about->after_goodbye && !about->astray)
    broken("a job that ended by itself does not fail", action.message);
  leaves(*about);
}

void Model::run(const agent::DropGlue& action) {
  say("core: drops glue {}", action.glue);
  const int box = box_of(action.glue);
  if (box < 0) return broken("actions refer to what there is", "DropGlue");
  std::erase_if(links_, [&](const Link& link) { return link.id == action.glue; });
  if (boxes_[box].glue.link == action.glue) agent_gone(box);
}

void Model::run(const agent::KillGlue& action) {
  say("core: kills glue {}", action.glue);
  const int box = box_of(action.glue);
  if (box < 0) return broken("actions refer to what there is", "KillGlue");
  std::erase_if(links_, [&](const Link& link) { return link.id == action.glue; });
  if (boxes_[box].glue.link == action.glue) killed(box, {"Error", "", 137, 0, {}});
}

void Model::run(const agent::GiveUp& action) {
  broken("the pilot gives up only after many failures", action.reason);
}

void Model::run(const agent::Note& action) {
  say("core: {}", action.text);
}

// The watch tells of a patch too; but the agent has the answer for that, and learns nothing from it.
void Model::publish(kube::Pod pod, bool news) {
  pod.resource_version = std::to_string(++last_version_);
  pod_ = std::make_shared<kube::Pod>(std::move(pod));
  if (!news) return;
  if (watching_ && !getting_) stream_.push_back(pod_);
  if (std::ranges::any_of(requests_, [](const Request& one) { return one.taken != nullptr; }))
    recent_.push_back(pod_);
}

void Model::take_status(int index, std::size_t which) {
  Box& box = boxes_[index];
  const kube::ContainerStatus status = box.statuses[which];
  box.statuses.erase(box.statuses.begin(), box.statuses.begin() + static_cast<std::ptrdiff_t>(which) + 1);
  box.late_status.reset();
  say("kubelet: says of {}: {} {} {}", status.name,
      status.state == kube::ContainerStatus::State::running   ? "running"
      : status.state == kube::ContainerStatus::State::waiting ? "waiting"
                                                              : "terminated",
      status.reason, status.container_id);
  kube::Pod next = *pod_;
  *std::ranges::find(next.statuses, status.name, &kube::ContainerStatus::name) = status;
  publish(std::move(next), true);
}

// A patch names the image before it, so an older one does nothing after a newer one.
void Model::apply_patch(Request& request) {
  Box& box = boxes_[request.box];
  request.late.reset();
  if (request.order > box.applied) {
    box.applied = request.order;
    say("api: {} is to have {}", box.name, request.image);
    kube::Pod next = *pod_;
    std::string& image = std::ranges::find(next.containers, box.name, &kube::ContainerSpec::name)->image;
    if (std::exchange(image, request.image) != request.image) publish(std::move(next), false);
  }
  request.taken = pod_;
}

void Model::answer(std::size_t index) {
  const Request request = requests_[index];
  requests_.erase(requests_.begin() + static_cast<std::ptrdiff_t>(index));
  boxes_[request.box].patching = 0;
  const std::int64_t version = kube::version_number(request.taken->resource_version);
  say("agent: the answer to Patch {}: version {}", request.attempt, version);
  // A watch that begins goes on from this version.
  core_->on_patched(request.attempt, *request.taken, now_);
  adjust_watch(version);
  pump();
  saw(*request.taken);
  if (std::ranges::none_of(requests_, [](const Request& one) { return one.taken != nullptr; }))
    recent_.clear();
}

void Model::fail_patch(std::size_t index, Failure failure) {
  const Request request = requests_[index];
  if (!request.unanswered) requests_.erase(requests_.begin() + static_cast<std::ptrdiff_t>(index));
  boxes_[request.box].patching = 0;
  say("agent: the answer to Patch {}: {}", request.attempt, failure.to_string());
  tell([&](Core& core, Time now) { core.on_patched(request.attempt, failure.to_error(), now); });
}

void Model::adjust_watch(std::int64_t from) {
  const bool wants = core_->watching();
  if (wants == watching_) return;
  watching_ = wants;
  stream_.clear();
  late_stream_.reset();
  getting_ = wants && from == 0;
  if (!wants || getting_) return;
  for (const PodVersion& one : recent_)
    if (kube::version_number(one->resource_version) > from) stream_.push_back(one);
}

// The core has been told of this pod.
void Model::saw(const kube::Pod& pod) {
  const std::int64_t version = kube::version_number(pod.resource_version);
  if (version < seen_) return;
  seen_ = version;
  std::erase_if(
      stream_, [&](const PodVersion& one) { return kube::version_number(one->resource_version) <= version; });
  told(pod);
}

void Model::told(const kube::Pod& pod) {
  for (Box& box : boxes_) {
    const kube::ContainerStatus* status = pod.status(box.name);
    if (!box.now || status == nullptr || box.glue.link == 0) continue;
    if (!agent::is_of(*status, std::to_string(box.now->id))) continue;
    box.now->shown = true;
    if (!box.now->leaving) learnt_[static_cast<std::size_t>(box.now->content)] = true;
    if (!box.behind_known) continue;
    for (const auto& [id, launched] : box.astray)
      if (client(id) != nullptr && now_ < launched + std::chrono::seconds(20))
        broken("a job in what ran before is killed as soon as the status shows it", box.name);
  }
}

void Model::launched(Box& box, Client& about) {
  about.ran = true;
  say("job: {} of {} runs in {}, content {}", about.request.job, about.request.owner, box.name,
      box.now->content);
  const bool means = content_of(about.request.asked.name()) == box.now->content;
  about.astray = !means;
  if (!means && box.behind)
    box.astray[about.id] = now_;
  else if (!means)
    broken("a job runs only in what its image names",
           fmt::format("{} asked for {} and got content {}", about.request.job, about.request.asked.name(),
                       box.now->content));
  if (box.owner_instance == box.now->id && box.owner != about.request.owner)
    broken("a warm container is never another owner's", box.name);
  box.owner_instance = box.now->id;
  box.owner = about.request.owner;
}

void Model::read(std::size_t number) {
  Link& link = links_[number];
  const Message said = link.said.front();
  link.said.pop_front();
  const GlueId id = link.id;
  const int box = link.box;
  const std::uint64_t instance = link.instance;
  using What = Message::What;
  static constexpr std::array k_words = {"hello", "goodbye", "exited", "job_ended", "launch_failed", "gone"};
  say("agent: {} of glue {} of {}", k_words[static_cast<std::size_t>(said.what)], id, boxes_[box].name);
  if (said.what == What::hang_up) std::erase_if(links_, [id](const Link& one) { return one.id == id; });
  if (said.what == What::exited)
    if (said.about >= 0) clients_[static_cast<std::size_t>(said.about)].told = true;
  tell([&](Core& core, Time now) {
    switch (said.what) {
      case What::hello:
        return core.on_hello(id, boxes_[box].name, std::to_string(instance), now);
      case What::goodbye:
        return core.on_goodbye(id, now);
      case What::exited: {
        wire::Exited exited{.job = said.job, .status = said.status};
        exited.oom_kills = said.memory ? 1 : 0;
        return core.on_exited(id, exited, now);
      }
      case What::job_ended:
        return core.on_job_ended(id, {.job = said.job, .status = said.status}, now);
      case What::launch_failed:
        return core.on_launch_failed(
            id, {said.job, wire::Fault::infrastructure, "the container is about to end"}, now);
      case What::hang_up:
        return core.on_glue_lost(id, now);
    }
  });
  if (!said.last) return;
  std::erase_if(links_, [id](const Link& one) { return one.id == id; });
  tell([id](Core& core, Time now) { core.on_glue_lost(id, now); });
}

void Model::ask(int index, wire::Verb verb) {
  Client& one = clients_[static_cast<std::size_t>(index)];
  static constexpr std::array k_last = {Plan{"reg.example/gamma:1", "last-0", 30'001},
                                        Plan{"reg.example/delta:1", "last-1", 30'002}};
  const Plan& plan = index < k_jobs ? variant_.jobs[static_cast<std::size_t>(index)]
                                    : k_last[static_cast<std::size_t>(index - k_jobs)];
  one = {};
  one.id = ++last_id_;
  one.stage = verb == wire::Verb::test ? Client::Stage::testing : Client::Stage::waiting;
  one.request = {one.id,
                 verb,
                 false,
                 agent::Image(std::string(plan.image)),
                 std::string(plan.owner),
                 "1." + std::to_string(index),
                 plan.uid};
  say("starter: job {} asks as client {}: {} {} of {}", one.request.job, one.id,
      verb == wire::Verb::test ? "test" : "exec", plan.image, plan.owner);
  const agent::Request request = one.request;
  tell([&](Core& core, Time now) { core.on_bind(request, now); });
}

// Its process ends, answered or not.
void Model::leaves(Client& about) {
  about.stage = Client::Stage::over;
  const ClientId id = about.id;
  tell([id](Core& core, Time now) { core.on_client_gone(id, now); });
}

std::optional<Time> Model::next_time() const {
  std::optional<Time> first;
  const auto consider = [&](const std::optional<Time>& time) {
    if (time && *time > now_) first = std::min(first.value_or(*time), *time);
  };
  // A beat is never due.
  if (const auto due = core_->next_deadline(); due && *due < now_ + std::chrono::hours(100)) consider(due);
  consider(retry_at_);
  consider(late_stream_);
  consider(late_hearing_);
  consider(late_task_);
  for (const Box& box : boxes_) consider(box.late_status);
  for (const Request& one : requests_) consider(one.late);
  return first;
}

void Model::pass_time() {
  const auto& all = core_->containers();
  const bool free = std::ranges::any_of(
      all, [](const agent::Container& one) { return one.kind() == agent::State::idle && one.glue != 0; });
  if (free && !core_->snapshot().waiting.empty()) broken("nobody waits while a container is free", "");
  now_ = *next_time();
  say("----");
}

void Model::check_rest() {
  for (int i = 0; i < jobs_; ++i) {
    const Client& one = clients_[static_cast<std::size_t>(i)];
    if (one.stage != Client::Stage::over) broken("nobody waits for ever", "job " + std::to_string(i));
    if (i >= k_jobs && !one.well)
      broken("every container is of use when all is calm", "job " + std::to_string(i));
  }
  for (const agent::Container& one : core_->containers())
    if (one.kind() != agent::State::idle) broken("every container comes to rest", one.name);
  if (!left_.empty())
    broken("what a lost job has left is removed when all is calm", std::to_string(*left_.begin()));
}

void Model::begin_finals() {
  say("all is over: two more jobs");
  faults_ = 0;
  finals_ = true;
  jobs_ = k_all_jobs;
}

}  // namespace glidepod::explore
