// The node: containers, the glues in them, and the kubelet. As in tests/simulate, which names its sources.

#include <algorithm>
#include <csignal>

#include "lib/kube/image_reference.hpp"
#include "tests/explore/model.hpp"

namespace glidepod::explore {

using kube::ContainerStatus;
using kube::Termination;
using std::chrono::seconds;

namespace {
constexpr Milliseconds k_first_pause = seconds(10), k_longest_pause = seconds(300), k_soon = seconds(1);

struct Name {
  std::string_view reference, repository;
  int content;
};
constexpr std::array k_names = {Name{"reg.example/pilot:1", "reg.example/pilot", home},
                                Name{"reg.example/pilot:2", "reg.example/pilot", home},
                                Name{"reg.example/alpha:1", "reg.example/alpha", alpha},
                                Name{"reg.example/beta:1", "reg.example/beta", beta},
                                Name{"reg.example/gamma:1", "reg.example/gamma", gamma},
                                Name{"reg.example/delta:1", "reg.example/delta", delta},
                                Name{"reg.example/gone:1", "reg.example/gone", gone},
                                Name{"reg.example/bad:1", "reg.example/bad", bad}};

std::string digest_of(int content) {
  return "sha256:" + std::string(64, static_cast<char>('0' + content));
}
}  // namespace

int Model::content_of(std::string_view reference) const {
  const auto at = reference.find('@');
  const auto digest = at == std::string_view::npos ? reference : reference.substr(at + 1);
  if (digest.starts_with("sha256:")) return digest[7] - '0';
  const auto found = std::ranges::find(k_names, reference, &Name::reference);
  return found == k_names.end() ? int{gone} : found->content;
}

ContainerStatus Model::status_of(const Box& box) const {
  ContainerStatus status;
  status.name = box.name;
  status.image = box.now->image;
  status.image_id = std::string(std::ranges::find(k_names, box.now->content, &Name::content)->repository) +
                    "@" + digest_of(box.now->content);
  status.container_id = "containerd://" + std::to_string(box.now->id);
  status.restart_count = box.now->restarts;
  status.last_terminated = box.before;
  if (box.runs()) {
    status.state = ContainerStatus::State::running;
  } else if (!box.reason.empty()) {
    status.state = ContainerStatus::State::waiting;
    status.reason = box.reason;
    status.message = box.message;
    status.last_terminated = box.now->end;
  } else {
    status.state = ContainerStatus::State::terminated;
    status.terminated = box.now->end;
  }
  return status;
}

void Model::hear() {
  late_hearing_.reset();
  for (Box& box : boxes_) box.wanted = pod_->container(box.name)->image;
  say("kubelet: hears of version {}", pod_->resource_version);
  sync();
}

// One pass at a time over the pod: first what is to end, then what is to start.
void Model::sync() {
  if (busy_) {
    again_ = true;
    return;
  }
  again_ = false;
  retry_at_.reset();
  for (int i = 0; i < k_boxes; ++i)
    if (boxes_[i].runs() && boxes_[i].now->image != boxes_[i].wanted) tasks_.push_back({i, true});
  for (int i = 0; i < k_boxes; ++i)
    if (!boxes_[i].runs() || boxes_[i].now->image != boxes_[i].wanted)
      tasks_.push_back({i, false, boxes_[i].wanted});
  busy_ = !tasks_.empty();
}

// Goes on with the pass until something takes time.
void Model::work() {
  late_task_.reset();
  while (!tasks_.empty()) {
    const Task task = tasks_.front();
    tasks_.pop_front();
    if (task.kill ? kill(task.box) : start(task.box, task.image)) break;
  }
  busy_ = !tasks_.empty() || std::ranges::any_of(boxes_, [](const Box& box) { return box.glue.stopping; });
}

bool Model::kill(int index) {
  Box& box = boxes_[index];
  if (!box.runs()) return false;
  say("kubelet: {} is stopped ({} is not {})", box.name, box.now->image, box.wanted);
  box.glue.stopping = true;
  terminate(index);
  return true;
}

// The pause is kept by container and image string, and counts from the end of whatever ran there last.
bool Model::in_backoff(Box& box, const std::string& image) {
  const Time ended = box.now->finished;
  const auto found = box.crashes.find(image);
  if (found == box.crashes.end() || ended - found->second.since > 2 * k_longest_pause) {
    box.crashes[image] = {k_first_pause, now_};
    return false;
  }
  if (now_ - ended < found->second.length) {
    retry_at_ = std::min(retry_at_.value_or(Time::max()), ended + found->second.length);
    return true;
  }
  found->second = {std::min(2 * found->second.length, k_longest_pause), now_};
  return false;
}

void Model::wait_for(Box& box, std::string reason, std::string message) {
  const bool same = box.reason == reason;
  box.reason = std::move(reason);
  box.message = std::move(message);
  say("kubelet: {} waits: {} {}", box.name, box.reason, box.message);
  if (!same) show(box);
}

bool Model::start(int index, const std::string& image) {
  Box& box = boxes_[index];
  if (box.runs() || box.now->end.exit_code == 0) return false;
  if (in_backoff(box, image)) {
    if (!faulty_ && box.reason != "CrashLoopBackOff" && learnt_[static_cast<std::size_t>(content_of(image))])
      broken("back-off is never met", box.name + " " + image);
    wait_for(box, "CrashLoopBackOff", "back-off restarting failed container");
    return false;
  }
  const int content = content_of(image);
  if (on_node_[static_cast<std::size_t>(content)]) {
    create(index, image, content);
    return true;
  }
  if (image == box.pull_image && now_ < box.pull.since + box.pull.length) {
    retry_at_ = std::min(retry_at_.value_or(Time::max()), box.pull.since + box.pull.length);
    wait_for(box, "ImagePullBackOff", box.message);
    return false;
  }
  const bool none = content == gone;
  if (none || std::exchange(fail_pull_, false)) {
    box.pull = {k_first_pause, now_};
    box.pull_image = image;
    retry_at_ = std::min(retry_at_.value_or(Time::max()), now_ + k_soon);
    wait_for(box, "ErrImagePull", none ? "manifest unknown" : "i/o timeout");
    return true;
  }
  say("kubelet: pulls {}", image);
  on_node_[static_cast<std::size_t>(content)] = true;
  box.pull = {};
  box.pull_image.clear();
  create(index, image, content);
  return true;
}

void Model::create(int index, const std::string& image, int content) {
  Box& box = boxes_[index];
  const auto before = box.now;
  const bool goodbye = box.glue.said_goodbye;
  if (before) box.before = before->end;
  box.now = Instance{.id = ++last_instance_, .image = image, .content = content};
  if (before) box.now->restarts = before->restarts + 1;
  box.reason = box.message = "";
  // A made-up name never comes again, once nothing says it any more.
  std::erase_if(box.crashes, [&](const auto& crash) {
    return crash.first != image && crash.first != box.wanted && crash.first.find('@') != std::string::npos &&
           crash.first != pod_->container(box.name)->image;
  });
  box.glue = {};
  say("node: {} is created: {} of content {} by {}", box.name, box.now->id, content, image);
  if (content == bad) {
    box.now->running = false;
    box.now->end = {"StartError", "exec: /glidepod: not a directory", 128, 0,
                    "containerd://" + std::to_string(box.now->id)};
    box.now->finished = now_;
    retry_at_ = std::min(retry_at_.value_or(Time::max()), now_ + k_soon);
    return wait_for(box, "RunContainerError", box.now->end.message);
  }
  // Somebody stopped the container while its image was being changed, and the kubelet starts the same again,
  // since it has not heard of the change. Only a goodbye can be taken for that of a patch.
  const bool same = before && before->image == image && goodbye;
  const std::string& says = pod_->container(box.name)->image;
  box.behind = (says != image && (same || box.behind)) || (same && box.patching != 0);
  const auto wanted = kube::ImageReference::parse(says);
  const bool differs = same && says != image && before->known && wanted && !wanted->digest.empty();
  box.behind_known = content == home || differs;
  box.astray.clear();
  box.glue.alive = true;
  connect(index);
  show(box);
}

// Containers that have ended by themselves are seen at the next look at the runtime.
void Model::look(int index) {
  boxes_[index].unseen_end = false;
  show(boxes_[index]);
  sync();
}

void Model::glue_says(int index, const Message& message) {
  const GlueId id = boxes_[index].glue.link;
  const auto link = std::ranges::find(links_, id, &Link::id);
  if (id != 0 && link != links_.end()) link->said.push_back(message);
}

void Model::connect(int index) {
  Box& box = boxes_[index];
  if (!core_ || !box.glue.alive || box.glue.link != 0 || box.glue.leaving || box.glue.job) return;
  box.glue.link = ++last_id_;
  links_.insert(std::ranges::upper_bound(links_, index, {}, &Link::box), {box.glue.link, index, box.now->id});
  glue_says(index, {Message::What::hello});
}

// Its connection to the agent has ended.
void Model::agent_gone(int index) {
  Glue& glue = boxes_[index].glue;
  if (!glue.alive) return;
  glue.link = 0;
  if (glue.job && !glue.job->status) job_ends(index, ExitStatus::signaled(SIGKILL), Cause::lost);
  if (!glue.job) connect(index);
}

void Model::take_launch(int index, JobId job, ClientId id) {
  Box& box = boxes_[index];
  Client* about = client(id);
  const int number = about == nullptr ? -1 : static_cast<int>(about - clients_.data());
  if (!box.glue.alive) return;
  if (box.glue.leaving) return glue_says(index, {Message::What::launch_failed, job});
  if (box.glue.job) return broken("a job is launched only in a container that has none", box.name);
  if (about == nullptr) return broken("a job is launched for a client that is known", box.name);
  launched(box, *about);
  left_.erase(about->request.uid);
  for (const Box& other : boxes_)
    if (other.glue.alive && other.glue.job && other.glue.job->about < 0 &&
        other.glue.job->uid == about->request.uid)
      broken("no job begins while what its user left is removed elsewhere", box.name);
  box.glue.job = GlueJob{job, number, id, about->request.uid};
  // That it has started tells the agent little, so it is told at once.
  core_->on_started(box.glue.link, job, 1, now_);
}

void Model::take_clear(int index, JobId job, uid_t uid) {
  Box& box = boxes_[index];
  if (!box.glue.alive) return;
  if (box.glue.leaving) return glue_says(index, {Message::What::launch_failed, job});
  if (box.glue.job) return broken("a glue with a job is given nothing else", box.name);
  for (const Box& other : boxes_)
    if (other.glue.alive && other.glue.job && other.glue.job->uid == uid)
      broken("nothing is removed of a user who has a job", std::to_string(uid));
  box.glue.job = GlueJob{job, -1, 0, uid, ExitStatus::exited(0)};
}

// The job dies of what ends a process.
void Model::take_signal(int index, JobId job, int number) {
  const Glue& glue = boxes_[index].glue;
  if (glue.alive && glue.job && glue.job->id == job && !glue.job->status)
    job_ends(index, ExitStatus::signaled(number), Cause::signal);
}

void Model::job_ends(int index, ExitStatus status, Cause cause) {
  Box& box = boxes_[index];
  GlueJob& job = *box.glue.job;
  job.status = status;
  say("job: {} of {} ends: {}", job.id, box.name, status.to_string());
  if (Client* about = client(job.client)) {
    about->end = status;
    about->cause = cause;
    about->after_goodbye = box.glue.said_goodbye;
  }
  glue_says(index, {Message::What::exited, job.id, status, cause == Cause::memory, job.about});
}

void Model::cleaned(int index) {
  Glue& glue = boxes_[index].glue;
  if (glue.job->about < 0) left_.erase(glue.job->uid);
  glue_says(index, {Message::What::job_ended, glue.job->id, *glue.job->status});
  glue.job.reset();
  if (glue.leaving) return killed(index, {"Error", "", 143, 0, {}});
  connect(index);
}

// SIGTERM from outside.
void Model::terminate(int index) {
  Glue& glue = boxes_[index].glue;
  if (!glue.alive || glue.leaving) return;
  glue.said_goodbye = true;
  glue_says(index, {Message::What::goodbye});
  if (!glue.job) return killed(index, {"Error", "", 143, 0, {}});
  glue.leaving = true;
}

// With everything in the container, at once.
void Model::killed(int index, Termination how) {
  Box& box = boxes_[index];
  if (!box.glue.alive) return;
  if (box.glue.job && !box.glue.job->status)
    if (Client* about = client(box.glue.job->client)) {
      about->end = ExitStatus::signaled(SIGKILL);
      about->cause = how.reason == "OOMKilled" ? Cause::memory : Cause::killed;
      about->after_goodbye = box.glue.said_goodbye;
    }
  if (box.glue.job && box.glue.job->about >= 0) left_.insert(box.glue.job->uid);
  say("node: {} has ended: {} {}", box.name, how.reason, how.exit_code);
  const bool stopping = box.glue.stopping;
  // After a goodbye the agent sees at once that the connection has ended.
  const auto link = std::ranges::find(links_, box.glue.link, &Link::id);
  if (link != links_.end() && !link->said.empty() && link->said.back().what == Message::What::goodbye)
    link->said.back().last = true;
  else
    glue_says(index, {Message::What::hang_up});
  box.glue = {.said_goodbye = box.glue.said_goodbye};
  how.container_id = "containerd://" + std::to_string(box.now->id);
  box.now->end = std::move(how);
  box.now->running = false;
  box.now->finished = now_;
  // While the pass waits for it, it goes on.
  if (stopping)
    busy_ = !tasks_.empty();
  else
    box.unseen_end = true;
}

int Model::box_of(GlueId glue) const {
  const auto link = std::ranges::find(links_, glue, &Link::id);
  return link == links_.end() ? -1 : link->box;
}

}  // namespace glidepod::explore
