#include "pilot-agent/core/doubts.hpp"

#include <algorithm>

namespace glidepod::agent {

namespace {
constexpr std::chrono::seconds k_first_pause{60}, k_longest_pause{600};
// Two failures within this time count as one.
constexpr std::chrono::seconds k_apart{60};
// An older failure is forgotten: the image may have been mended since.
constexpr std::chrono::hours k_forgotten{2};
constexpr std::size_t k_most = 256, k_most_names = 4;
}  // namespace

const Doubts::Doubt& Doubts::add(const Image& image, const std::string& named, std::string message,
                                 bool counts, Time now) {
  std::erase_if(doubts_, [now](const Doubt& doubt) { return now >= doubt.until + k_forgotten; });
  auto found = std::ranges::find(doubts_, image, &Doubt::image);
  if (found == doubts_.end()) {
    if (doubts_.size() >= k_most) doubts_.pop_front();
    found = doubts_.insert(doubts_.end(), Doubt{.image = image, .first = now});
  }
  found->message = std::move(message);
  const bool another = !named.empty() && std::ranges::find(found->names, named) == found->names.end();
  if (another && found->names.size() < k_most_names) found->names.push_back(named);
  // Jobs that fail together failed by one try.
  if (found->failures > 0 && now < found->last + k_apart) return *found;
  found->last = now;
  found->counted += counts ? 1 : 0;
  const auto doublings = std::min(found->failures++, 5);
  found->until = now + std::min(k_first_pause * (1 << doublings), k_longest_pause);
  return *found;
}

void Doubts::drop(const Image& image) {
  std::erase_if(doubts_, [&](const Doubt& doubt) { return doubt.image == image; });
}

const Doubts::Doubt* Doubts::waits(const Image& image, Time now) const {
  const auto found = std::ranges::find(doubts_, image, &Doubt::image);
  return found == doubts_.end() || now >= found->until ? nullptr : &*found;
}

}  // namespace glidepod::agent
