// What can happen next, and what it does.

#include <algorithm>
#include <csignal>

#include "tests/explore/model.hpp"

namespace glidepod::explore {

using agent::Core;
using kube::Failure;
using std::chrono::seconds;

const std::vector<Variant>& variants() {
  static const std::vector<Variant> k_all = {
      {"two",
       "two owners, two images, one with a test first",
       {Plan{"reg.example/alpha:1", "alice", 20'001, true}, Plan{"reg.example/beta:1", "bob", 20'002}}},
      {"same",
       "two owners, one image",
       {Plan{"reg.example/alpha:1", "alice", 20'001}, Plan{"reg.example/alpha:1", "bob", 20'002}}},
      {"warm",
       "one owner, one image",
       {Plan{"reg.example/alpha:1", "alice", 20'001}, Plan{"reg.example/alpha:1", "alice", 20'001}}},
      {"name",
       "one of the images is the pilot's own by another name",
       {Plan{"reg.example/pilot:2", "alice", 20'001}, Plan{"reg.example/beta:1", "bob", 20'002}}},
      {"gone",
       "one of the images does not exist",
       {Plan{"reg.example/gone:1", "alice", 20'001}, Plan{"reg.example/beta:1", "bob", 20'002}}},
      {"bad",
       "one of the images cannot start",
       {Plan{"reg.example/bad:1", "alice", 20'001}, Plan{"reg.example/beta:1", "bob", 20'002}}},
  };
  return k_all;
}

std::string_view name_of(Kind kind) {
  static constexpr std::array k_names = {"first_pod",
                                         "timer",
                                         "message",
                                         "apply",
                                         "answer",
                                         "hear",
                                         "task",
                                         "look",
                                         "again",
                                         "status",
                                         "get",
                                         "stream",
                                         "exec",
                                         "cleaned",
                                         "stopped",
                                         "told_late",
                                         "ask",
                                         "ends",
                                         "time",
                                         "kill_glue",
                                         "stop",
                                         "strike",
                                         "kill_for_memory",
                                         "kill_all_for_memory",
                                         "late_status",
                                         "late_stream",
                                         "late_request",
                                         "late_hearing",
                                         "late_task",
                                         "refused",
                                         "lost_done",
                                         "lost_undone",
                                         "late_effect",
                                         "cut",
                                         "leave",
                                         "signal",
                                         "agent_dies",
                                         "pull_fails",
                                         "link_breaks"};
  return k_names[static_cast<std::size_t>(kind)];
}

Model::Model(const Variant& variant, int faults, bool tell)
    : variant_(variant), faults_(faults), tell_(tell) {
  auto pod = std::make_shared<kube::Pod>();
  pod->name = "pilot-1";
  pod->resource_version = "1";
  const std::string own = "reg.example/pilot:1";
  const auto status = [&](const std::string& name, const std::string& id) {
    kube::ContainerStatus one;
    one.name = name;
    one.state = kube::ContainerStatus::State::running;
    one.image = own;
    one.image_id = "reg.example/pilot@sha256:" + std::string(64, '0');
    one.container_id = "containerd://" + id;
    return one;
  };
  pod->containers.push_back({"pilot", own, {"/usr/bin/pilot-agent"}});
  pod->statuses.push_back(status("pilot", "pilot"));
  for (int i = 0; i < k_boxes; ++i) {
    Box& box = boxes_[i];
    box.name = "payload-" + std::to_string(i);
    box.wanted = own;
    box.now = Instance{.id = ++last_instance_, .image = own};
    box.glue.alive = true;
    pod->containers.push_back({box.name, own, {"/glidepod/bin/glue"}});
    pod->statuses.push_back(status(box.name, std::to_string(box.now->id)));
  }
  pod_ = std::move(pod);
  start_agent();
}

void Model::add(Kind kind, std::size_t a, std::size_t b, bool late) {
  choices_.push_back({kind, static_cast<std::uint8_t>(a), static_cast<std::uint8_t>(b), late});
}

const std::vector<Choice>& Model::choices() {
  choices_.clear();
  list_prompt();
  const bool quiet = std::ranges::all_of(choices_, &Choice::late);
  for (std::size_t i = 0; i < static_cast<std::size_t>(jobs_); ++i)
    if (clients_[i].stage == Client::Stage::unasked) add(Kind::ask, i);
  for (std::size_t i = 0; i < k_boxes; ++i) {
    const auto& job = boxes_[i].glue.job;
    if (job && !job->status) add(Kind::ends, i);
  }
  if (quiet && next_time()) add(Kind::time);
  if (faults_ > 0) list_faults();
  return choices_;
}

void Model::list_prompt() {
  if (first_pod_) add(Kind::first_pod);
  if (const auto due = core_->next_deadline(); due && *due <= now_) add(Kind::timer);
  // What an ended container's glue has said is read before a new container is there; and of one glue's
  // connections the first is greeted first.
  const auto waits = [this](const Link& link) {
    return std::ranges::any_of(links_, [&](const Link& other) {
      if (other.box != link.box || other.said.empty()) return false;
      const bool greets = other.id < link.id && other.said.front().what == Message::What::hello;
      return other.instance < link.instance || greets;
    });
  };
  for (std::size_t i = 0; i < links_.size(); ++i)
    if (!links_[i].said.empty() && !waits(links_[i])) add(Kind::message, i);
  for (std::size_t i = 0; i < requests_.size(); ++i)
    add(requests_[i].taken ? Kind::answer : Kind::apply, i, 0, is_late(requests_[i].late));
  if (std::ranges::any_of(boxes_,
                          [&](const Box& box) { return box.wanted != pod_->container(box.name)->image; }))
    add(Kind::hear, 0, 0, is_late(late_hearing_));
  if (busy_ && std::ranges::none_of(boxes_, [](const Box& box) { return box.glue.stopping; }))
    add(Kind::task, 0, 0, is_late(late_task_));
  if (!busy_ && (again_ || (retry_at_ && *retry_at_ <= now_))) add(Kind::again);
  for (std::size_t i = 0; i < k_boxes; ++i) {
    const Box& box = boxes_[i];
    if (box.unseen_end) add(Kind::look, i);
    for (std::size_t j = 0; j < box.statuses.size(); ++j) add(Kind::status, i, j, is_late(box.late_status));
    if (box.glue.job && box.glue.job->status) add(Kind::cleaned, i);
    if (box.glue.leaving && box.glue.job && !box.glue.job->status) add(Kind::stopped, i);
    if (box.glue.told_late) add(Kind::told_late, i);
  }
  if (getting_) add(Kind::get, 0, 0, is_late(late_stream_));
  if (!stream_.empty()) add(Kind::stream, 0, 0, is_late(late_stream_));
  for (std::size_t i = 0; i < k_all_jobs; ++i)
    if (clients_[i].stage == Client::Stage::tested) add(Kind::exec, i);
}

void Model::list_faults() {
  for (std::size_t i = 0; i < k_boxes; ++i) {
    const Box& box = boxes_[i];
    if (!box.statuses.empty() && !box.late_status) add(Kind::late_status, i);
    if (!box.glue.alive) continue;
    const auto& job = box.glue.job;
    const bool runs = job && !job->status;
    add(Kind::kill_glue, i);
    if (!box.glue.leaving) add(Kind::stop, i);
    if (!box.glue.leaving && runs) add(Kind::strike, i);
    if (runs) add(Kind::kill_for_memory, i);
    if (runs) add(Kind::kill_all_for_memory, i);
    if (box.glue.link != 0) add(Kind::link_breaks, i);
  }
  if ((getting_ || !stream_.empty()) && !late_stream_) add(Kind::late_stream);
  if (!stream_.empty()) add(Kind::cut);
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    const Request& one = requests_[i];
    if (!one.late) add(Kind::late_request, i);
    if (one.taken || one.unanswered) continue;
    for (const Kind kind : {Kind::refused, Kind::lost_done, Kind::lost_undone, Kind::late_effect})
      add(kind, i);
  }
  for (const Choice& choice : std::vector(choices_)) {
    if (choice.kind == Kind::hear && !late_hearing_) add(Kind::late_hearing);
    if (choice.kind != Kind::task) continue;
    if (!late_task_) add(Kind::late_task);
    const Task& task = tasks_.front();
    const auto content = static_cast<std::size_t>(content_of(task.image));
    if (!task.kill && !fail_pull_ && !on_node_[content]) add(Kind::pull_fails);
  }
  for (std::size_t i = 0; i < k_jobs; ++i) {
    if (!clients_[i].active()) continue;
    add(Kind::leave, i);
    if (!clients_[i].signalled) add(Kind::signal, i);
  }
  if (!first_pod_) add(Kind::agent_dies);
}

void Model::apply(const Choice& choice) {
  const std::size_t a = choice.a;
  const int box = choice.a;
  say("* {} {} {}", name_of(choice.kind), choice.a, choice.b);
  if (choice.is_fault()) {
    --faults_;
    faulty_ = true;
    return fault(choice);
  }
  switch (choice.kind) {
    case Kind::first_pod: {
      first_pod_ = false;
      const PodVersion pod = pod_;
      const auto earlier = was_before_ ? Core::Earlier::some : Core::Earlier::none;
      core_->on_first_pod(*pod, earlier, now_);
      pump();
      return saw(*pod);
    }
    case Kind::timer:
      for (int i = 0; i < 3; ++i) {
        const auto due = core_->next_deadline();
        if (!due || *due > now_) return;
        core_->on_time(now_);
        pump();
      }
      if (const auto due = core_->next_deadline(); due && *due <= now_)
        broken("a deadline that has passed is dealt with", "");
      return;
    case Kind::message:
      return read(a);
    case Kind::apply: {
      apply_patch(requests_[a]);
      if (requests_[a].unanswered) requests_.erase(requests_.begin() + choice.a);
      return;
    }
    case Kind::answer:
      return answer(a);
    case Kind::hear:
      return hear();
    case Kind::task:
      return work();
    case Kind::look:
      return look(box);
    case Kind::again:
      return sync();
    case Kind::status:
      return take_status(box, choice.b);
    case Kind::get: {
      getting_ = false;
      late_stream_.reset();
      const PodVersion pod = pod_;
      core_->on_pod(*pod, now_);
      pump();
      return saw(*pod);
    }
    case Kind::stream: {
      late_stream_.reset();
      const PodVersion pod = stream_.front();
      stream_.pop_front();
      core_->on_pod(*pod, now_);
      pump();
      return saw(*pod);
    }
    case Kind::exec:
    case Kind::ask: {
      const Plan* plan = a < k_jobs ? &variant_.jobs[a] : nullptr;
      const bool test = choice.kind == Kind::ask && plan != nullptr && plan->test;
      return ask(box, test ? wire::Verb::test : wire::Verb::exec);
    }
    case Kind::cleaned:
      return cleaned(box);
    case Kind::stopped:
      return job_ends(box, ExitStatus::signaled(SIGTERM), Cause::stop);
    case Kind::told_late:
      boxes_[a].glue.told_late = false;
      return terminate(box);
    case Kind::ends:
      return job_ends(box, ExitStatus::exited(3), Cause::itself);
    case Kind::time:
      return pass_time();
    default:
      return;
  }
}

void Model::fault(const Choice& choice) {
  const std::size_t a = choice.a;
  const int index = choice.a;
  const auto ago = [this](int most) { return now_ + seconds(most); };
  const Failure unclear{Failure::Kind::transport, 0, {}, "timeout", {}, Failure::Effect::unknown, {}};
  switch (choice.kind) {
    case Kind::kill_glue:
      return killed(index, {"Error", "", 137, 0, {}});
    case Kind::stop:
      return terminate(index);
    case Kind::strike:
      boxes_[a].glue.told_late = true;
      return job_ends(index, ExitStatus::signaled(SIGTERM), Cause::stop);
    case Kind::kill_for_memory:
      return job_ends(index, ExitStatus::signaled(SIGKILL), Cause::memory);
    case Kind::kill_all_for_memory:
      return killed(index, {"OOMKilled", "", 137, 0, {}});
    case Kind::late_status:
      boxes_[a].late_status = ago(20);
      return;
    case Kind::late_stream:
      late_stream_ = ago(35);
      return;
    case Kind::late_request:
      requests_[a].late = ago(15);
      return;
    case Kind::late_hearing:
      late_hearing_ = ago(10);
      return;
    case Kind::late_task:
      late_task_ = ago(30);
      return;
    case Kind::refused:
      return fail_patch(a, {Failure::Kind::status, 403, "Forbidden", "no", {}, Failure::Effect::none, {}});
    case Kind::lost_done:
      apply_patch(requests_[a]);
      return fail_patch(a, unclear);
    case Kind::lost_undone:
      return fail_patch(a, unclear);
    case Kind::late_effect:
      requests_[a].unanswered = true;
      requests_[a].late = ago(45);
      return fail_patch(a, unclear);
    case Kind::cut:
      stream_.clear();
      late_stream_.reset();
      getting_ = true;
      return;
    case Kind::leave:
      return leaves(clients_[a]);
    case Kind::signal: {
      clients_[a].signalled = true;
      const ClientId id = clients_[a].id;
      core_->on_client_signal(id, SIGTERM, now_);
      return pump();
    }
    case Kind::agent_dies:
      return agent_dies();
    case Kind::pull_fails:
      fail_pull_ = true;
      return;
    case Kind::link_breaks: {
      const GlueId link = boxes_[a].glue.link;
      const auto found = std::ranges::find(links_, link, &Link::id);
      if (found != links_.end()) found->said.push_back({Message::What::hang_up});
      return agent_gone(index);
    }
    default:
      return;
  }
}

}  // namespace glidepod::explore
