#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lib/condor/classad.hpp"

namespace glidepod::provisioner {

// An image by its full name ("docker.io/library/alpine:3.19"), and how many idle jobs want it.
struct ImageDemand {
  std::string image;
  std::int64_t idle = 0;
  friend bool operator==(const ImageDemand&, const ImageDemand&) = default;
};

// The most that is kept of an owner's jobs in a group, and of a group.
inline constexpr std::size_t k_most_images = 16;

// The image of a job (or of an aggregate of jobs) as START means it, by its full name. Empty where the ad
// does not say it by a plain string, where only the pilot's rules say what it means (a path), or where it is
// none.
std::string image_of(const condor::Ad& ad);

// How often which image is wanted. Counted apart for each owner and bounded for each, so that whoever asks
// for a hundred thousand images spoils only the count of their own (Misra and Gries: what is wanted by more
// than one in 17 of an owner's jobs is never lost, and nothing counts more than it is wanted).
class ImageTally {
 public:
  void add(const std::string& owner, const std::string& image, std::int64_t jobs);
  void add(const ImageTally& other);
  // At most 16, the most wanted first; equal counts by name.
  std::vector<ImageDemand> most_wanted() const;

 private:
  std::map<std::string, std::map<std::string, std::int64_t>> owners_;
};

}  // namespace glidepod::provisioner
