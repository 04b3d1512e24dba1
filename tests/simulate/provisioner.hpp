#pragma once

#include <map>
#include <string>
#include <vector>

#include "lib/base/loop.hpp"
#include "lib/kube/pod.hpp"
#include "lib/kube/pulls.hpp"

namespace glidepod::simulate {

class World;

// The provisioner and its pullers: pulls what the pod wants, and says so in its annotation. In some schedules
// it answers late, never, twice, wrongly, for another image, or when nobody wants to know any more.
class Provisioner {
 public:
  explicit Provisioner(World& world) : world_(world) {}

  // The pod's watch.
  void told(const kube::Pod& pod);

 private:
  struct Pull {
    kube::WantedImage wanted;
    bool gone = false;  // nobody wants it any more
    Milliseconds pause{0};
  };
  using State = kube::PulledImage::State;
  void begin(const kube::WantedImage& wanted);
  void attempt(const std::string& ask);
  void astray(const kube::WantedImage& wanted);
  void say(const kube::WantedImage& wanted, State state, std::string reason = {}, std::string message = {});
  World& world_;
  std::map<std::string, Pull> pulls_;  // by question
  std::vector<kube::PulledImage> answers_;
  SteadyTime last_said_{};
};

}  // namespace glidepod::simulate
