#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "provisioner/decide/decide.hpp"

namespace glidepod::provisioner {

// What the breaker of a group and image allows now: everything (below 0), or so many pods that try.
struct BreakerSays {
  std::int64_t allowed = -1;
  Step why;
};

// Opens when enough pilots failed and fewer have registered since the first of these: those of before say
// nothing of a pool or an image that has broken now. Closes when one registers after that. While open, one
// pod at a time tries, after pauses that double.
BreakerSays consult(Breaker& breaker, const GroupSupply& supply, const PolicySettings& settings, Time now);

// What the API's refusals of the group's pods in the place allow now.
BreakerSays refused(const History& history, const Group& group, const std::string& place, Time now);
// Whether these words of the API are about a quota; it has no code for that.
bool names_quota(std::string_view words);
// A pod of them was asked for: it was made (no words), or refused with these.
void note_refusal(History& history, const Group& group, const std::string& place,
                  const std::optional<std::string>& words, const PolicySettings& settings, Time now);

// The pause after one of this length: twice as long, up to breaker_longest_pause.
Seconds next_pause(Seconds pause, const PolicySettings& settings);

// A canary goes out: the next one waits twice as long.
void canary_sent(Breaker& breaker, const PolicySettings& settings, Time now);

}  // namespace glidepod::provisioner
