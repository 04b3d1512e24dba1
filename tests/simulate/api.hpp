#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/kube/failure.hpp"
#include "lib/kube/pod.hpp"
#include "tests/simulate/random.hpp"

namespace glidepod::simulate {

class World;
using PodVersion = std::shared_ptr<const kube::Pod>;

// The API server: one pod, all its versions, who watches it, and what may become of a request.
class Api {
 public:
  explicit Api(World& world) : world_(world) {}

  void create(kube::Pod pod);
  PodVersion pod() const { return versions_.back(); }
  void set_status(kube::ContainerStatus status);
  void set_likely(std::string_view text);
  void set_pulled(std::string_view text);  // the provisioner's annotation
  void set_infeasible();                   // the node cannot do the resize of this generation
  void touch();                            // a new version that says the same
  bool down = false;

  // What admission makes of an image.
  std::string admitted(const std::string& image) const;
  using Answer = std::variant<PodVersion, kube::Failure>;
  // What a request changes: a container's image, if it is still the one before and the pod of that version
  // (empty: any), the annotation that says what is wanted, sizes, or nothing.
  struct Change {
    std::string container = {}, image = {}, before = {}, version = {};
    std::optional<std::string> wanted = {};
    std::vector<kube::SizeChange> sizes = {};
    bool any() const { return wanted || !container.empty() || !sizes.empty(); }
  };
  // One attempt. The handler is called once, by then or a little later. What the request does may come after
  // that.
  void request(const Change& change, Milliseconds timeout, const std::function<void(const Answer&)>& handler);

  // A stream of versions after this one; told until cut. One at a time.
  void watch(std::uint64_t after, std::function<void(PodVersion)> changed, std::function<void()> cut);
  void unwatch() { ++stream_; }
  void cut();
  static std::uint64_t version(const kube::Pod& pod) { return std::stoull(pod.resource_version); }

 private:
  bool store(const Change& change);
  bool store_sizes(const Change& change);
  void publish(kube::Pod pod);
  void stream(const PodVersion& version);
  World& world_;
  std::vector<PodVersion> versions_;
  std::uint64_t stream_ = 0;  // the present one
  SteadyTime stream_last_{}, kubelet_last_{}, provisioner_last_{}, kubelet_late_until_{};
  bool streaming_ = false;
  std::function<void(PodVersion)> changed_;
  std::function<void()> cut_;
};

}  // namespace glidepod::simulate
