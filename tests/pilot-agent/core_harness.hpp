#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pilot-agent/core/core.hpp"

namespace glidepod::agent {

using namespace std::chrono_literals;
using kube::ContainerStatus;

inline const std::string k_digest_a = "sha256:" + std::string(64, 'a');
inline const std::string k_digest_b = "sha256:" + std::string(64, 'b');
inline const std::string k_digest_home = "sha256:" + std::string(64, '0');
inline const std::string k_home_tag = "reg.example/pilot:g-";  // then a number and the digest
inline const std::string k_image_a = "docker.io/library/a:1";
inline const std::string k_image_b = "docker.io/library/b:1";

// A pod that was made with another image for payload container i, which has yet to come.
inline std::function<void(kube::Pod&)> made_with(int i, const std::string& image) {
  return [i, image](kube::Pod& pod) {
    const auto at = static_cast<std::size_t>(i) + 1;
    pod.containers[at].image = image;
    pod.statuses[at] = {};
    pod.statuses[at].name = pod.containers[at].name;
  };
}

// A core with a pod of COUNT payload containers whose glues are connected, but for those that are to be born
// on an image, and a clock that tests move.
struct Harness {
  explicit Harness(
      int count = 1, const Policy& policy = {}, int pilot_restarts = 0,
      Core::Earlier earlier = Core::Earlier::none,
      const std::function<void(kube::Pod&)>& more = [](kube::Pod&) {}, bool ids = true)
      : core(policy), ids_known(ids) {
    pod.name = "pilot-1";
    pod.resource_version = "1";
    add("pilot", "reg.example/pilot:1", {"/usr/bin/pilot-agent"}, pilot_restarts);
    for (int i = 0; i < count; ++i)
      add(name(i), "reg.example/pilot:1", {"/glidepod/bin/glue"}, pilot_restarts);
    more(pod);
    for (int i = 0; i < count; ++i)
      if (pod.containers[static_cast<std::size_t>(i) + 1].image == pod.containers.front().image) hello(i);
    core.on_first_pod(pod, earlier, now);
    take();
  }

  // Another agent takes over, and knows nothing yet.
  void restart(const Policy& policy = {}) {
    std::destroy_at(&core);
    std::construct_at(&core, policy);
  }

  // In a pod where no container's id can be told.
  static Harness without_ids(int count = 1) {
    return Harness(
        count, {}, 0, Core::Earlier::none, [](kube::Pod&) {}, false);
  }

  static std::string name(int i) { return "payload-" + std::to_string(i); }
  void add(const std::string& container, const std::string& image, std::vector<std::string> command,
           int restarts) {
    pod.containers.push_back({container, image, std::move(command)});
    ContainerStatus status;
    status.name = container;
    status.state = ContainerStatus::State::running;
    status.image = image;
    status.image_id = "reg.example/pilot@" + k_digest_home;
    status.restart_count = restarts;
    status.container_id = "test://" + container;
    pod.statuses.push_back(status);
  }
  ContainerStatus& status(int i) { return pod.statuses.at(static_cast<std::size_t>(i) + 1); }

  // The id of the container whose glue is connected or, after a goodbye or a loss, of the next one.
  std::string id(int i) {
    if (std::exchange(over[i], false)) ++instances[i];
    return instances[i] == 0 ? name(i) : fmt::format("{}.{}", name(i), instances[i]);
  }
  GlueId hello(int i = 0, bool empty = false) {
    glue[i] = ++last_id;
    core.on_hello(glue[i], name(i), ids_known ? id(i) : std::string(), now, empty);
    take();
    return glue[i];
  }
  void goodbye(int i = 0) {
    over[i] = true;
    core.on_goodbye(glue[i], now);
    core.on_glue_lost(glue[i], now);
    take();
  }
  void lose(int i = 0) {
    over[i] = true;
    core.on_glue_lost(glue[i], now);
    take();
  }

  ClientId ask(const std::string& image, wire::Verb verb = wire::Verb::exec,
               const std::string& owner = "alice", uid_t uid = 20001) {
    Request request;
    request.client = ++last_id;
    request.verb = verb;
    if (!image.empty()) request.asked = Image(image);
    request.named = "docker://" + image;
    request.owner = owner;
    request.uid = uid;
    request.job = "1.0";
    request.any_image = image.empty();
    request.disk_kib = disk_kib;
    request.slot = slot;
    request.slot_size = slot_size;
    request.memory_mib = memory_mib;
    request.keep_idle = keep_idle;
    core.on_bind(request, now);
    take();
    return request.client;
  }

  // The API took the newest patch, or what admission made of its image; its answer is the pod with that, as
  // the kubelet last described it.
  void patched(const std::string& admitted = {}) { answer(last<Patch>(), admitted); }
  void patched_attempt(std::uint64_t attempt) {
    for (const Action& action : std::vector(all))
      if (const Patch* patch = std::get_if<Patch>(&action); patch != nullptr && patch->attempt == attempt)
        answer(*patch, {});
  }
  void answer(const Patch& taken, const std::string& admitted) {
    const Patch patch = taken;
    for (auto& container : pod.containers)
      if (container.name == patch.container) container.image = admitted.empty() ? patch.image : admitted;
    core.on_patched(patch.attempt, pod, now);
    take();
  }
  void patch_failed(int status, const std::string& message = "no") {
    kube::Failure failure;
    failure.kind = status == 0 ? kube::Failure::Kind::transport : kube::Failure::Kind::status;
    failure.status = status;
    failure.message = message;
    core.on_patched(last<Patch>().attempt, failure.to_error(), now);
    take();
  }
  // The kubelet says that container i now runs this.
  void runs(int i, const std::string& image, const std::string& image_id) {
    ContainerStatus& s = status(i);
    s.state = ContainerStatus::State::running;
    s.reason = s.message = "";
    s.image = image;
    s.image_id = image_id;
    s.container_id = "test://" + id(i);
    tell();
  }
  void waits(int i, const std::string& reason, const std::string& message) {
    status(i).state = ContainerStatus::State::waiting;
    status(i).reason = reason;
    status(i).message = message;
    tell();
  }
  void tell() {
    core.on_pod(pod, now);
    take();
  }
  void runs_home(int i) { runs(i, "reg.example/pilot:1", "reg.example/pilot@" + k_digest_home); }
  // A whole switch to an image, as it goes when all is well.
  void switch_to(int i, const std::string& image, const std::string& digest) {
    answer(last<Patch>([&](const Patch& patch) { return patch.container == name(i); }), {});
    goodbye(i);
    hello(i);
    runs(i, image, image.substr(0, image.rfind(':')) + "@" + digest);
  }
  // Its glue has removed what a lost job had left.
  void cleared(int i = 0) {
    CHECK(core.containers().state_of(name(i)) == State::clearing);
    wire::JobEnded ended;
    ended.job = last<Clear>().job;
    core.on_job_ended(glue[i], ended, now);
    take();
  }
  void end_job(int i = 0, ExitStatus status = ExitStatus::exited(0), bool clean = true) {
    wire::JobEnded ended;
    ended.job = last<Launch>().job;
    ended.status = status;
    ended.clean = clean;
    core.on_job_ended(glue[i], ended, now);
    take();
  }
  // The core is called when it said, and not otherwise.
  void pass(Time::duration time) {
    now += time;
    const auto due = core.next_deadline();
    if (!due || now < *due) return;
    core.on_time(now);
    take();
    const auto next = core.next_deadline();
    CHECK_MESSAGE((!next || now < *next), "a deadline that has passed and does nothing");
  }

  void take() {
    for (Action& action : core.take_actions()) all.push_back(std::move(action));
    CHECK_FALSE(noted("event=unexpected_transition"));
  }
  template <typename T>
  int count() const {
    int n = 0;
    for (const Action& action : all) n += std::holds_alternative<T>(action) ? 1 : 0;
    return n;
  }
  // The newest action of its kind; there must be one.
  template <typename T>
  const T& last(const std::function<bool(const T&)>& which = [](const T&) { return true; }) const {
    for (auto action = all.rbegin(); action != all.rend(); ++action)
      if (const T* found = std::get_if<T>(&*action); found != nullptr && which(*found)) return *found;
    FAIL("no such action");
    throw 0;
  }
  State state(int i = 0) const { return *core.containers().state_of(name(i)); }
  bool noted(const std::string& text) const {
    for (const Action& action : all)
      if (const Note* found = std::get_if<Note>(&action))
        if (found->text.find(text) != std::string::npos) return true;
    return false;
  }

  Core core;
  kube::Pod pod;
  Time now{1000s};
  std::map<int, GlueId> glue;
  std::map<int, int> instances;
  std::map<int, bool> over;
  bool ids_known;
  std::int64_t disk_kib = 0;    // of the slots
  std::int64_t memory_mib = 0;  // that jobs ask for
  std::string slot;             // its name
  std::chrono::seconds keep_idle{0};
  kube::Amount slot_size;
  std::uint64_t last_id = 0;
  std::vector<Action> all;
};

}  // namespace glidepod::agent
