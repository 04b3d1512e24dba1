#include "tests/simulate/kubelet.hpp"

#include <algorithm>

#include "tests/simulate/world.hpp"

namespace glidepod::simulate {

using kube::Termination;
using std::chrono::seconds;

namespace {
constexpr Milliseconds k_first_pause = seconds(10), k_longest_pause = seconds(300);
}

Box* Kubelet::find(const std::string& name) {
  const auto found = std::ranges::find(boxes_, name, &Box::name);
  return found == boxes_.end() ? nullptr : &*found;
}

void Kubelet::begin() {
  const auto& pod = *world_.api.pod();
  boxes_.resize(pod.containers.size() - 1);
  for (std::size_t i = 0; i < boxes_.size(); ++i) {
    Box& box = boxes_[i];
    box.name = pod.containers[i + 1].name;
    box.wanted = pod.containers[i + 1].image;
    box.size = box.in_force = pod.containers[i + 1].size;
    if (box.wanted == Images::k_home_name) create(static_cast<int>(i), box.wanted, Images::k_home);
  }
  if (std::ranges::any_of(boxes_, [](const Box& box) { return !box.now; })) sync();
}

void Kubelet::told(const kube::Pod& pod) {
  bool changed = false, resized = false;
  for (Box& box : boxes_) {
    const std::string& image = pod.container(box.name)->image;
    changed |= image != box.wanted;
    box.wanted = image;
    resized |= box.size != pod.container(box.name)->size;
    box.size = pod.container(box.name)->size;
  }
  if (resized) resize_later();
  if (changed) poke(world_.takes(1, 20));
}

// Soon, or late, or when nobody waits for it any more.
void Kubelet::resize_later() {
  Milliseconds wait = world_.takes(50, 2000);
  if (world_.storm && world_.weather.resize_astray > 0) {
    Random astray = world_.random.aside(world_.clock.steps());
    if (astray.chance(world_.weather.resize_astray)) {
      const auto how = astray.between(0, 2);
      if (how == 0) {
        world_.say("kubelet: does not resize, for minutes");
        wait = astray.delay(120'000, 600'000);
      }
      if (how == 1) {
        world_.say("kubelet: cannot resize");
        world_.clock.after(wait, [this] { world_.api.set_infeasible(); });
        wait = astray.delay(120'000, 600'000);
      }
      if (how == 2) wait = astray.delay(5000, 60'000);
    }
  }
  world_.clock.after(wait, [this, generation = generation_] {
    if (generation == generation_) resize();
  });
}

void Kubelet::resize() {
  for (Box& box : boxes_) {
    if (box.size == box.in_force) continue;
    // With another image in the same pass it is lost (kubernetes#127356).
    if (!box.runs() || box.now->image != box.wanted) continue;
    world_.say("kubelet: {} has {}m, {} MiB", box.name, box.size.limit.cpu, box.size.limit.memory >> 20);
    // From Kubernetes 1.34 on it looks first.
    if (box.size.limit.memory < box.in_force.limit.memory &&
        box.glue->used_kib() > box.size.limit.memory / 1024)
      continue;
    box.in_force = box.size;
    world_.properties.resized(box);
    show(box);
  }
  const auto differs = [](const Box& box) { return box.size != box.in_force; };
  if (retrying_ || !std::ranges::any_of(boxes_, differs)) return;
  retrying_ = true;
  world_.clock.after(world_.random.aside(world_.clock.steps()).delay(10'000, 60'000), [this] {
    retrying_ = false;
    resize();
  });
}

void Kubelet::poke(Milliseconds wait) {
  world_.clock.after(wait, [this, generation = generation_] {
    if (generation == generation_) sync();
  });
}

void Kubelet::sync() {
  if (busy_) {
    again_ = true;
    return;
  }
  busy_ = true;
  again_ = unhappy_ = false;
  std::vector<int> order;
  for (int i = 0; i < static_cast<int>(boxes_.size()); ++i) {
    const Box& box = boxes_[static_cast<std::size_t>(i)];
    if (box.runs() && box.now->image != box.wanted) tasks_.push_back({Task::What::kill, i, {}});
    if (!box.runs() || box.now->image != box.wanted) order.push_back(i);
  }
  for (const int i : order) tasks_.push_back({Task::What::start, i, box(i).wanted});
  work();
}

// Goes on with the pass, until something takes time.
void Kubelet::work() {
  while (!tasks_.empty()) {
    const Task task = tasks_.front();
    tasks_.pop_front();
    if (task.what == Task::What::kill ? kill(task.box) : start(task.box, task.image)) return;
  }
  busy_ = false;
  if (again_)
    poke(world_.takes(1, 50));
  else if (unhappy_)
    poke(world_.random.delay(500, 3000));
}

bool Kubelet::kill(int index) {
  Box& box = this->box(index);
  if (!box.runs()) return false;
  world_.say("kubelet: {} is stopped ({} is not {})", box.name, box.now->image, box.wanted);
  killing_ = index;
  const std::uint64_t instance = box.now->id;
  world_.clock.after(k_grace, [this, index, instance] {
    Box& late = this->box(index);
    if (!late.runs() || late.now->id != instance) return;
    world_.say("kubelet: the grace of {} is over", late.name);
    late.glue->killed({"Error", "", 137, 0});
  });
  world_.clock.after(world_.takes(1, 20), [this, index, instance] {
    Box& now = this->box(index);
    if (now.runs() && now.now->id == instance) now.glue->terminate();
  });
  return true;
}

void Kubelet::exited(Box& box, Termination end) {
  if (!box.runs()) return;
  world_.say("node: {} has ended: {} {}", box.name, end.reason, end.exit_code);
  box.now->phase = Box::Instance::Phase::exited;
  box.now->end = std::move(end);
  box.now->end.container_id = "containerd://" + std::to_string(box.now->id);
  box.now->finished = world_.now();
  const int index = static_cast<int>(&box - boxes_.data());
  if (killing_ == index) {
    killing_ = -1;
    world_.clock.after(world_.takes(1, 30), [this, generation = generation_] {
      if (generation == generation_) work();
    });
    return;
  }
  // Seen at the next look at the runtime.
  world_.clock.after(world_.random.delay(1, 1000), [this, index, generation = generation_] {
    if (generation != generation_) return;
    show(this->box(index));
    sync();
  });
}

void Kubelet::restart() {
  world_.say("kubelet: starts again");
  ++generation_;
  busy_ = again_ = false;
  killing_ = -1;
  tasks_.clear();
  for (Box& box : boxes_) {
    box.crashes.clear();
    box.pulls.clear();
  }
  poke(world_.random.delay(200, 5000));
  const auto differs = [](const Box& box) { return box.size != box.in_force; };
  if (std::ranges::any_of(boxes_, differs)) resize_later();
}

// The pause is kept by container and image string, and counts from the end of whatever ran there last.
bool Kubelet::in_backoff(Box& box, const std::string& image) {
  if (!box.now || box.now->phase != Box::Instance::Phase::exited) return false;
  const SteadyTime ended = box.now->finished;
  const auto found = box.crashes.find(image);
  if (found == box.crashes.end() || ended - found->second.since > 2 * k_longest_pause) {
    box.crashes[image] = {k_first_pause, world_.now()};
    return false;
  }
  if (world_.now() - ended < found->second.length) return true;
  found->second = {std::min(2 * found->second.length, k_longest_pause), world_.now()};
  return false;
}

void Kubelet::wait_for(Box& box, std::string reason, std::string message) {
  unhappy_ = true;
  const bool same = box.reason == reason;
  box.reason = std::move(reason);
  box.message = std::move(message);
  if (!same) show(box);
}

bool Kubelet::start(int index, const std::string& planned) {
  Box& box = this->box(index);
  if (box.runs()) return false;
  if (box.now && box.now->end.exit_code == 0) return false;  // OnFailure
  const std::string image = world_.weather.newest_spec ? box.wanted : planned;
  if (in_backoff(box, image)) {
    if (box.reason != "CrashLoopBackOff") {
      ++pauses_;
      world_.properties.paused(box, image);
    }
    wait_for(box, "CrashLoopBackOff", "back-off restarting failed container");
    return false;
  }
  const auto local = world_.images.on_node(image);
  const bool tag = image.find('@') == std::string::npos;
  if (local && !(tag && world_.weather.always_pull)) {
    world_.clock.after(world_.takes(20, 300),
                       [this, index, image, content = *local, generation = generation_] {
                         if (generation != generation_) return;
                         create(index, image, content);
                         work();
                       });
    return true;
  }
  auto& pause = box.pulls[image];
  if (world_.now() < pause.since + pause.length) {
    wait_for(box, "ImagePullBackOff", box.message);
    return false;
  }
  world_.say("kubelet: pulls {} for {}", image, box.name);
  world_.clock.after(world_.takes(50, 5000), [this, index, image, generation = generation_] {
    if (generation != generation_) return;
    Box& then = this->box(index);
    const auto content = world_.images.in_registry(image);
    const bool gone = !content || world_.images.content(*content).kind == Content::Kind::gone;
    if (gone || world_.fault(world_.weather.pull_fails)) {
      Box::Pause& next = then.pulls[image];
      next = {next.length.count() == 0 ? k_first_pause : std::min(2 * next.length, k_longest_pause),
              world_.now()};
      wait_for(then, "ErrImagePull", gone ? "manifest unknown" : "i/o timeout");
    } else {
      then.pulls.erase(image);
      world_.images.pull(image, *content);
      create(index, image, *content);
    }
    work();
  });
  return true;
}

void Kubelet::create(int index, const std::string& image, int content) {
  Box& box = this->box(index);
  const Content::Kind kind = world_.images.content(content).kind;
  if (kind == Content::Kind::create_error)
    return wait_for(box, "CreateContainerError", "cannot use this image's configuration");
  Box::Instance next;
  next.id = ++last_instance_;
  next.image = image;
  next.content = content;
  next.restarts = box.now ? box.now->restarts + 1 : 0;
  const auto before = box.now;
  if (before) box.before = before->end;
  box.now = next;
  box.reason = box.message = "";
  world_.say("node: {} is created: containerd://{} of content {} by {}, restart {}", box.name, next.id,
             content, image, next.restarts);
  if (kind != Content::Kind::good && kind != Content::Kind::mute) {
    box.now->phase = Box::Instance::Phase::exited;
    box.now->end = {kind == Content::Kind::start_error ? "StartError" : "ContainerCannotRun",
                    "exec: /glidepod: not a directory", 128, 0};
    box.now->end.container_id = "containerd://" + std::to_string(next.id);
    box.now->finished = world_.now();
    wait_for(box, "RunContainerError", box.now->end.message);
    return;
  }
  if (world_.weather.runtime_dies && world_.storm && world_.random.aside(world_.clock.steps()).chance(100)) {
    world_.say("fault: the runtime is killed while it starts {}", box.name);
    box.glue.reset();
    box.now->phase = Box::Instance::Phase::exited;
    box.now->end.container_id = "containerd://" + std::to_string(next.id);
    box.now->finished = world_.now();
    return show(box);
  }
  // Only a goodbye can be taken for that of a patch.
  const bool same = before && before->image == image && box.glue && box.glue->said_goodbye();
  box.glue = std::make_unique<Glue>(world_, index, next.id);
  const bool stale = world_.api.pod()->container(box.name)->image != image;
  box.behind = (stale && (same || box.behind)) || (same && world_.driver.patching(box.name));
  if (box.behind) world_.properties.behind(box, same ? before->id : 0);
  box.glue->begin();
  show(box);
  world_.tempt();
}

kube::ContainerStatus Kubelet::status_of(const Box& box) {
  kube::ContainerStatus status;
  status.name = box.name;
  if (!box.now) {
    status.state = kube::ContainerStatus::State::waiting;
    status.reason = box.reason;
    status.message = box.message;
    return status;
  }
  status.image =
      world_.images.shown_name(box.now->content, box.now->image, world_.weather.many_names, world_.random);
  status.image_id = world_.images.image_id(box.now->content, world_.weather.bare_ids);
  status.container_id = "containerd://" + std::to_string(box.now->id);
  status.restart_count = box.now->restarts;
  if (world_.weather.resize_served) status.size = box.in_force;
  if (box.before) status.last_terminated = box.before;
  if (box.runs()) {
    status.state = kube::ContainerStatus::State::running;
  } else if (!box.reason.empty()) {
    status.state = kube::ContainerStatus::State::waiting;
    status.reason = box.reason;
    status.message = box.message;
    status.last_terminated = box.now->end;
  } else {
    status.state = kube::ContainerStatus::State::terminated;
    status.terminated = box.now->end;
  }
  return status;
}

// Statuses of one container are seen in order, but one may be overtaken and then is never seen; those of
// different containers come as they like.
void Kubelet::show(Box& box) {
  const int index = static_cast<int>(&box - boxes_.data());
  const Milliseconds wait =
      world_.fault(world_.weather.late_status) ? world_.random.delay(500, 20'000) : world_.takes(5, 300);
  world_.clock.after(wait, [this, index, number = ++box.told, status = status_of(box)]() mutable {
    Box& then = this->box(index);
    if (number <= then.shown || silent_) return;
    then.shown = number;
    silent_ = status.terminated && status.terminated->exit_code == 0;
    world_.say("kubelet: says of {}: {} {} restarts {} {} {}", status.name,
               status.state == kube::ContainerStatus::State::running   ? "running"
               : status.state == kube::ContainerStatus::State::waiting ? "waiting"
                                                                       : "terminated",
               status.reason, status.restart_count, status.container_id, status.image_id);
    world_.api.set_status(std::move(status));
  });
}

}  // namespace glidepod::simulate
