#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "pilot-agent/core/image.hpp"
#include "pilot-agent/core/types.hpp"

namespace glidepod::agent {

// Images that could not be pulled or started on this node, while the pilot's own image could. Each such image
// waits for its next try, longer after each failure. Jobs with other images, and the pilot, go on as usual.
class Doubts {
 public:
  struct Doubt {
    Image image = Image::home();
    std::vector<std::string> names;  // the first few names that jobs use for it
    std::string message;             // the last words of a kubelet, a runtime or a registry
    int failures = 0;                // failures within a minute count as one; each makes the pause longer
    int counted = 0;                 // failures whose words may mean that the image is at fault
    Time first{}, last{}, until{};
  };
  // The number of counted failures after which a job is held.
  static constexpr int k_enough = 3;

  // Notes a failure of this image. named: the job's own name for it. The reference is valid until the next
  // call.
  const Doubt& add(const Image& image, const std::string& named, std::string message, bool counts, Time now);
  // Takes the doubt back. Either this image has started, or the pilot's own image could not be had either.
  void drop(const Image& image);
  // The doubt because of which this image has to wait; null if the image may be tried now.
  const Doubt* waits(const Image& image, Time now) const;
  // All doubts. One whose pause is over is remembered for a while.
  const std::deque<Doubt>& all() const { return doubts_; }

 private:
  std::deque<Doubt> doubts_;  // the oldest first
};

}  // namespace glidepod::agent
