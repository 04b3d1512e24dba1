#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace glidepod::kube {

// How a pilot says which images it wants on its node, and how it is told what became of them: two annotations
// of its pod. The first is written by the pilot alone, the second by who makes pullers.
inline constexpr const char* k_wanted_images = "glidepod.io/wanted-images";
inline constexpr const char* k_pulled_images = "glidepod.io/pulled-images";
// No more than these are read or written; the rest of a longer list is not looked at.
inline constexpr std::size_t k_most_wanted = 16;

struct WantedImage {
  std::string image;
  std::string ask;  // made up for each time it is wanted: an old answer is not taken for a new one
  friend bool operator==(const WantedImage&, const WantedImage&) = default;
};

struct PulledImage {
  enum class State : std::uint8_t {
    pulling,  // somebody is at it
    ready,    // it is on the node
    failed,   // the kubelet says why, and tries again
    lost,     // nobody is at it, and nobody will be
  };
  WantedImage wanted;
  State state = State::pulling;
  std::string reason, message;  // of failed: the kubelet's; of lost: why
  friend bool operator==(const PulledImage&, const PulledImage&) = default;
};

// How a pilot is told what its group's jobs in the queues want: one more annotation, written by the
// provisioner alone. No more than k_most_wanted of these either.
inline constexpr const char* k_likely_images = "glidepod.io/likely-images";

struct LikelyImage {
  std::string image;  // its full name
  int share = 0;      // of the idle jobs, per thousand
  friend bool operator==(const LikelyImage&, const LikelyImage&) = default;
};

std::string likely_text(const std::vector<LikelyImage>& likely);
// Read leniently, as below. An image whose share is no number from 0 to 1000 is left out.
std::vector<LikelyImage> read_likely(std::string_view text);

std::string wanted_text(const std::vector<WantedImage>& wanted);
std::string pulled_text(const std::vector<PulledImage>& pulled);
// Reading is lenient: entries that are wrong (no image name, a word that is too long) are left out; a text
// that is no list, or far too long, gives an empty list.
std::vector<WantedImage> read_wanted(std::string_view text);
std::vector<PulledImage> read_pulled(std::string_view text);

}  // namespace glidepod::kube
