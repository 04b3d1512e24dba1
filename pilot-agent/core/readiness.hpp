#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pilot-agent/core/image.hpp"
#include "pilot-agent/core/likely.hpp"
#include "pilot-agent/core/types.hpp"

namespace glidepod::agent {

// What the next jobs are likely to ask for: by what this pilot ran lately, and by what waits in the queue.
class Readiness {
 public:
  void ran(const Image& image, const std::string& owner) { lately_.ran(image, owner); }
  // The images of waiting jobs.
  void told(std::vector<QueuedImage> queued) { queued_ = std::move(queued); }
  std::vector<Lately::One> weights() const { return with_queued(lately_.all(), queued_); }

  // A spare container could not get this image of a job's: none tries it before this time.
  void failed(const Image& image, Time until) { not_before_[image.name()] = until; }
  bool may_try(const Image& image) const { return !not_before_.contains(image.name()); }
  void on_time(Time now) {
    std::erase_if(not_before_, [now](const auto& failed) { return now >= failed.second; });
  }
  std::optional<Time> next_deadline() const {
    const auto first = std::ranges::min_element(not_before_, {}, [](const auto& one) { return one.second; });
    return first == not_before_.end() ? std::nullopt : std::optional(first->second);
  }

 private:
  Lately lately_;
  std::vector<QueuedImage> queued_;
  std::map<std::string, Time, std::less<>> not_before_;
};

}  // namespace glidepod::agent
