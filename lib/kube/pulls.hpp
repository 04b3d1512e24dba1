#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace glidepod::kube {

// Two annotations of a pilot's pod. In the first the pilot says which images it wants on its node; only the
// pilot writes it. In the second it is told what became of them; only the provisioner, which makes pullers,
// writes it.
inline constexpr const char* k_wanted_images = "glidepod.io/wanted-images";
inline constexpr const char* k_pulled_images = "glidepod.io/pulled-images";
// The largest number of images that is read or written. The rest of a longer list is ignored.
inline constexpr std::size_t k_most_wanted = 16;

struct WantedImage {
  std::string image;
  std::string ask;  // made up anew each time the image is wanted, so that no old answer counts
  friend bool operator==(const WantedImage&, const WantedImage&) = default;
};

struct PulledImage {
  enum class State : std::uint8_t {
    pulling,  // a puller pulls it
    ready,    // it is on the node
    failed,   // the kubelet could not pull it, and tries again
    lost,     // no puller pulls it, and none will
  };
  WantedImage wanted;
  State state = State::pulling;
  std::string reason, message;  // for failed: the kubelet's; for lost: why
  friend bool operator==(const PulledImage&, const PulledImage&) = default;
};

// One more annotation, which only the provisioner writes: the images that waiting jobs of the pilot's group
// want. It has at most k_most_wanted images too.
inline constexpr const char* k_likely_images = "glidepod.io/likely-images";

struct LikelyImage {
  std::string image;  // its full name
  int share = 0;      // the share of the idle jobs that want it, per thousand
  friend bool operator==(const LikelyImage&, const LikelyImage&) = default;
};

std::string likely_text(const std::vector<LikelyImage>& likely);
// Reading is lenient, as below. An image whose share is no number from 0 to 1000 is left out.
std::vector<LikelyImage> read_likely(std::string_view text);

std::string wanted_text(const std::vector<WantedImage>& wanted);
std::string pulled_text(const std::vector<PulledImage>& pulled);
// Reading is lenient. Wrong entries, such as one without an image name or with a word that is too long, are
// left out. A text that is no list, or far too long, gives an empty list.
std::vector<WantedImage> read_wanted(std::string_view text);
std::vector<PulledImage> read_pulled(std::string_view text);

}  // namespace glidepod::kube
