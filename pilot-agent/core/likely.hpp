#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/kube/pulls.hpp"

namespace glidepod::agent {

// What this pilot ran lately: how often which image for whom, where each further job makes all before it
// count a little less. Bounded, whatever is asked for.
class Lately {
 public:
  static constexpr std::size_t k_most = 128;

  struct One {
    std::string image, owner;
    double weight = 0;
  };
  void ran(const std::string& image, const std::string& owner);
  std::span<const One> all() const { return all_; }

 private:
  std::vector<One> all_;
};

// The same with what the queues want, for whoever comes: in all that weighs as much as ten jobs, so that it
// leads a pilot that has run little, and turns one that has run something else.
std::vector<Lately::One> with_queued(std::span<const Lately::One> lately,
                                     std::span<const kube::LikelyImage> queued);

// An idle container as the next job would find it.
struct Free {
  std::string image;
  std::string owner;   // whose jobs alone it may have; empty: anybody's
  bool ready = false;  // it may have a job as it is
  bool stays = false;  // it is being made ready, and counts as what it will be
};

// The container to make ready while nobody waits, and its image.
struct Renewal {
  std::size_t free = 0;
  std::string image;
};

// What is worth most, by how likely it is that the next job finds a container of its image that it may have:
// by Lately, where each further container of an image counts half of the one before. None where nothing is
// worth the trouble, so that it comes to rest. An image that may not be had is not proposed.
std::optional<Renewal> likeliest(std::span<const Lately::One> lately, std::span<const Free> free,
                                 const std::function<bool(const std::string&)>& may_have);

// The one whose loss matters least, for a job that finds none; free is not empty.
std::size_t least_wanted(std::span<const Lately::One> lately, std::span<const Free> free);

}  // namespace glidepod::agent
