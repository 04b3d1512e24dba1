#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "pilot-agent/core/types.hpp"

namespace glidepod::agent {

// Images that could not be had on this node, though the pilot's own could. Each waits by itself, longer after
// each failure, and no other image's job, nor the pilot, bears any of it.
class Doubts {
 public:
  struct Doubt {
    std::string image;               // as written in a pod
    std::vector<std::string> names;  // of those that jobs name it by, the first few
    std::string message;             // the last words of a kubelet, a runtime or a registry
    int failures = 0;                // no two within a minute of each other; the pause grows for each
    int counted = 0;                 // of these, by words that may be the image's fault
    Time first{}, last{}, until{};
  };
  // How many counted failures are enough to hold a job.
  static constexpr int k_enough = 3;

  // Notes a failure of this image, for a job that names it so. The pointer is valid until the next call.
  const Doubt& add(const std::string& image, const std::string& named, std::string message, bool counts,
                   Time now);
  // Takes the doubt back: the pilot's own image could not be had either, or this image started.
  void drop(const std::string& image);
  // The doubt by which this image is not tried before its pause is over; null if it may be tried.
  const Doubt* waits(const std::string& image, Time now) const;
  // All doubts, also those whose pause is over: they are remembered for a while.
  const std::deque<Doubt>& all() const { return doubts_; }

 private:
  std::deque<Doubt> doubts_;  // the oldest first
};

}  // namespace glidepod::agent
