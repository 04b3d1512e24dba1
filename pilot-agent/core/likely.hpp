#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pilot-agent/core/image.hpp"

namespace glidepod::agent {

// What this pilot ran lately: a weight for each image and owner. Each new job makes all jobs before it weigh
// a little less. The size is bounded, whatever jobs ask for.
class Lately {
 public:
  static constexpr std::size_t k_most = 128;

  struct One {
    Image image;
    std::string owner;
    double weight = 0;
  };
  void ran(const Image& image, const std::string& owner);
  std::span<const One> all() const { return all_; }

 private:
  std::vector<One> all_;
};

// An image that waiting jobs want, and the share of them that do, per thousand.
struct QueuedImage {
  Image image;
  int share = 0;
};

// Lately with the images of waiting jobs added, for any owner. All added images together weigh as much as ten
// jobs. So they decide for a pilot that has run little, and slowly turn one that has run something else.
std::vector<Lately::One> with_queued(std::span<const Lately::One> lately,
                                     std::span<const QueuedImage> queued);

// An idle container as the next job would find it.
struct Free {
  Image image = Image::home();
  std::string owner;   // the only owner whose jobs may use it; empty: any owner
  bool ready = false;  // it can take a job as it is
  bool stays = false;  // it is being made ready, and counts as what it will be; or is kept for a claim
};

// The container to make ready while nobody waits, and its image.
struct Renewal {
  std::size_t free = 0;
  Image image;
};

// The renewal that helps most: the one after which the next job most likely finds a container of its image
// that it may use. `lately` says how likely each image is, and each further container of an image counts half
// of the one before. None if no renewal is worth the work, so that the containers come to rest. may_have:
// whether an image may be proposed.
std::optional<Renewal> likeliest(std::span<const Lately::One> lately, std::span<const Free> free,
                                 const std::function<bool(const Image&)>& may_have);

// The index of the container whose loss matters least, for a job that finds no container of its image. `free`
// must not be empty.
std::size_t least_wanted(std::span<const Lately::One> lately, std::span<const Free> free);

}  // namespace glidepod::agent
