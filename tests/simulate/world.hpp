#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>

#include "tests/simulate/api.hpp"
#include "tests/simulate/clock.hpp"
#include "tests/simulate/coverage.hpp"
#include "tests/simulate/driver.hpp"
#include "tests/simulate/images.hpp"
#include "tests/simulate/kubelet.hpp"
#include "tests/simulate/properties.hpp"
#include "tests/simulate/provisioner.hpp"
#include "tests/simulate/random.hpp"
#include "tests/simulate/starters.hpp"
#include "tests/simulate/weather.hpp"

namespace glidepod::simulate {

// One schedule: a pod on its node, all that acts on it, and chance. One seed is one schedule.
class World {
 public:
  struct Options {
    bool tell = false;  // the story, while it happens
  };
  World(std::uint64_t seed, Coverage& coverage, Options options);

  // Runs it to its end, or to what must not happen; says which property, empty if all held.
  const std::string& run(std::uint64_t most_steps);

  Random random;
  Weather weather;
  Clock clock;
  Images images;
  Coverage& coverage;
  Properties properties;
  Api api;
  Kubelet kubelet;
  Driver driver;
  Starters starters;
  Provisioner provisioner;
  bool storm = true;  // faults may happen

  // What all payload containers have together.
  static constexpr kube::Amount k_room{4000, std::int64_t{4} << 30};

  SteadyTime now() const { return clock.now(); }
  template <typename... Args>
  void say(fmt::format_string<Args...> format, Args&&... args) {
    if (tell_) line(fmt::format(format, std::forward<Args>(args)...));
  }
  bool telling() const { return tell_; }
  // A fault of this rate, per thousand; never when the world is calm.
  bool fault(int per_thousand) { return storm && per_thousand > 0 && random.chance(per_thousand); }
  // How long something takes that usually takes this; now and then much longer.
  Milliseconds takes(std::int64_t low, std::int64_t high) {
    return fault(weather.slow) ? random.delay(high, high * 20) : random.delay(low, high);
  }
  // Something began that a fault may hit in the middle.
  void tempt();
  // A container is to have another image, and the kubelet is slow to hear of it: something may happen to it,
  // or to who asked, just then.
  bool strike_just_then(const std::string& container);

 private:
  void line(const std::string& text);
  void gremlin();
  void strike();
  void run_until(SteadyTime end, std::uint64_t most_steps);
  void finals(std::uint64_t most_steps);
  void ends(std::uint64_t most_steps);
  void ask_for_none(std::uint64_t most_steps);
  bool tell_;
};

}  // namespace glidepod::simulate
