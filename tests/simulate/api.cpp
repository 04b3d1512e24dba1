#include "tests/simulate/api.hpp"

#include <algorithm>

#include "tests/simulate/world.hpp"

namespace glidepod::simulate {

using kube::Failure;

namespace {
Failure transport(std::string message) {
  return {Failure::Kind::transport, 0, {}, std::move(message), {}};
}
Failure status(int code, std::string message) {
  return {Failure::Kind::status, code, "Simulated", std::move(message), {}};
}
}  // namespace

void Api::create(kube::Pod pod) {
  pod.resource_version = std::to_string(1);
  versions_.push_back(std::make_shared<kube::Pod>(std::move(pod)));
}

void Api::publish(kube::Pod pod) {
  pod.resource_version = std::to_string(versions_.size() + 1);
  versions_.push_back(std::make_shared<kube::Pod>(std::move(pod)));
  if (streaming_) stream(versions_.back());
  const Milliseconds late(world_.now() < kubelet_late_until_ ? 3000 : 0);
  kubelet_last_ = std::max(kubelet_last_, world_.now() + world_.takes(2, 100) + late);
  world_.clock.at(kubelet_last_, [this, version = versions_.back()] { world_.kubelet.told(*version); });
}

void Api::set_status(kube::ContainerStatus status) {
  kube::Pod next = *pod();
  const auto found = std::ranges::find(next.statuses, status.name, &kube::ContainerStatus::name);
  if (found == next.statuses.end())
    next.statuses.push_back(std::move(status));
  else
    *found = std::move(status);
  publish(std::move(next));
}

void Api::set_likely(std::string_view text) {
  kube::Pod next = *pod();
  next.likely_images = kube::read_likely(text);
  publish(std::move(next));
}

void Api::set_pulled(std::string_view text) {
  kube::Pod next = *pod();
  next.pulled_images = kube::read_pulled(text);
  publish(std::move(next));
}

void Api::set_infeasible() {
  kube::Pod next = *pod();
  next.pending_resize = {"Infeasible", next.generation};
  publish(std::move(next));
}

// False if the pod is of another version.
bool Api::store_sizes(const Change& change) {
  kube::Pod next = *pod();
  if (!world_.weather.resize_served || change.version != next.resource_version) return false;
  for (const kube::SizeChange& one : change.sizes) {
    world_.say("api: {} is to have {}m, {} MiB", one.container, one.size.limit.cpu,
               one.size.limit.memory >> 20);
    std::ranges::find(next.containers, one.container, &kube::ContainerSpec::name)->size = one.size;
  }
  world_.properties.sized(next);
  ++next.generation;
  next.pending_resize.reset();
  publish(std::move(next));
  return true;
}

void Api::touch() {
  publish(*pod());
}

std::string Api::admitted(const std::string& written) const {
  std::string image = written;
  const auto at = image.find('@');
  const auto tag = at == std::string::npos ? at : image.find(':', image.find('/'));
  if (world_.weather.tags_dropped && tag < at) image.erase(tag, at - tag);
  if (!world_.weather.mirror || image.starts_with(Images::k_mirror)) return image;
  return std::string(Images::k_mirror) + image;
}

// False if the image is not the one that the change begins with.
bool Api::store(const Change& change) {
  if (!change.sizes.empty()) return store_sizes(change);
  kube::Pod next = *pod();
  if (change.wanted) {
    world_.say("api: wanted are {}", *change.wanted);
    auto wanted = kube::read_wanted(*change.wanted);
    if (next.wanted_images == wanted) return true;
    next.wanted_images = std::move(wanted);
    publish(std::move(next));
    provisioner_last_ = std::max(provisioner_last_, world_.now() + world_.takes(5, 300));
    world_.clock.at(provisioner_last_, [this, pod = pod()] { world_.provisioner.told(*pod); });
    return true;
  }
  const std::string& container = change.container;
  const auto found = std::ranges::find(next.containers, container, &kube::ContainerSpec::name);
  const std::string admitted_image = admitted(change.image);
  if (found->image != change.before || (!change.version.empty() && change.version != next.resource_version)) {
    world_.say("api: {} is not to have {}: it has {} at version {}", container, admitted_image, found->image,
               next.resource_version);
    return false;
  }
  world_.say("api: {} is to have {}", container, admitted_image);
  if (found->image == admitted_image) return true;  // no new version
  found->image = admitted_image;
  ++next.generation;
  if (world_.strike_just_then(container)) kubelet_late_until_ = world_.now() + std::chrono::seconds(10);
  publish(std::move(next));
  return true;
}

void Api::request(const Change& change, Milliseconds timeout,
                  const std::function<void(const Answer&)>& handler) {
  World& w = world_;
  const Weather& weather = w.weather;
  const auto fail = [&w, handler](Milliseconds wait, Failure failure) {
    w.clock.after(wait, [handler, failure = std::move(failure)] { handler(failure); });
  };
  const auto effect = [this, change] { return !change.any() || store(change); };
  if (down || w.fault(weather.request_lost))
    return fail(std::min(timeout, w.random.delay(1, 15'000)), transport("reset"));
  if (w.fault(weather.busy)) {
    static constexpr std::array codes = {409, 429, 500, 503, 504};
    const int code = codes[static_cast<std::size_t>(w.random.between(0, 4))];
    // Both may be said of what was stored all the same.
    if ((code == 500 || code == 504) && w.random.chance(300)) w.clock.after(w.random.delay(1, 50), effect);
    Failure failure = status(code, "busy");
    if (code == 429) failure.retry_after = std::chrono::seconds(w.random.between(1, 5));
    return fail(w.takes(2, 100), std::move(failure));
  }
  if (!change.sizes.empty() && !weather.resize_served)
    return fail(w.takes(2, 100), status(404, "not served"));
  if (change.any() && w.fault(weather.refused)) {
    static constexpr std::array codes = {403, 404, 410, 422};
    const int code = codes[static_cast<std::size_t>(w.random.between(0, 3))];
    (change.sizes.empty() ? w.properties.refused : w.properties.sizes_refused) = true;
    return fail(w.takes(2, 100), status(code, w.random.chance(300) ? "policy denied request" : "refused"));
  }
  if (change.any() && w.fault(weather.late_effect)) {
    const Milliseconds given_up = std::min(timeout, w.random.delay(500, 15'000));
    w.clock.after(given_up + w.random.delay(1, 30'000), effect);
    return fail(given_up, transport("timeout"));
  }
  if (w.fault(weather.answer_lost)) {
    const Milliseconds there = w.takes(1, 50);
    w.clock.after(there, effect);
    return fail(std::min(timeout, there + w.random.delay(1, 15'000)), transport("cut off"));
  }
  const Milliseconds there = w.takes(1, 30);
  const Milliseconds back = w.takes(1, 100);
  if (there + back > timeout) {
    w.clock.after(there, effect);
    return fail(timeout, transport("timeout"));
  }
  w.clock.after(there, [this, &w, effect, handler, back] {
    const bool stored = effect();
    w.clock.after(back, [handler, stored, version = pod()] {
      if (stored)
        handler(version);
      else
        handler(status(422, "test failed"));
    });
  });
}

void Api::watch(std::uint64_t after, std::function<void(PodVersion)> changed, std::function<void()> cut) {
  ++stream_;
  changed_ = std::move(changed);
  cut_ = std::move(cut);
  streaming_ = true;
  for (std::size_t i = after; i < versions_.size(); ++i) stream(versions_[i]);
  if (Random silent = world_.random.aside(world_.clock.steps() + 50);
      world_.weather.silent_streams > 0 && silent.chance(world_.weather.silent_streams))
    world_.clock.after(silent.delay(0, 5000), [this, id = stream_] {
      if (id != stream_) return;
      world_.say("api: the watch falls silent");
      streaming_ = false;
    });
  if (down || world_.fault(100))
    world_.clock.after(world_.random.delay(1, 2000), [this, id = stream_] {
      if (id == stream_) this->cut();
    });
}

void Api::stream(const PodVersion& version) {
  stream_last_ = std::max(stream_last_, world_.now() + world_.takes(1, 50));
  world_.clock.at(stream_last_, [this, version, id = stream_] {
    if (id == stream_ && streaming_) changed_(version);
  });
}

void Api::cut() {
  if (!streaming_) return;
  streaming_ = false;
  ++stream_;
  world_.say("api: the watch is cut");
  cut_();
}

}  // namespace glidepod::simulate
