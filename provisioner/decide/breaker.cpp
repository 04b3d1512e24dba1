#include "provisioner/decide/breaker.hpp"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "lib/base/found.hpp"

namespace glidepod::provisioner {

namespace {
constexpr Seconds k_quota_pause{60};
}  // namespace

BreakerSays consult(Breaker& breaker, const GroupSupply& supply, const PolicySettings& settings, Time now) {
  if (settings.breaker_failures == 0) return {};
  if (breaker.open) {
    const bool works = std::any_of(supply.registrations.begin(), supply.registrations.end(),
                                   [&](const Outcome& o) { return o.at > breaker.opened; });
    if (works) breaker = {.open = false, .opened = {}, .closed = now, .next_canary = {}, .pause = {}};
  }
  if (!breaker.open) {
    // What failed before the breaker last closed counts no more.
    std::vector<Time> failed;
    for (const Outcome& o : supply.failures)
      if (o.at > breaker.closed) failed.push_back(o.at);
    if (std::ssize(failed) < settings.breaker_failures) return {};
    std::ranges::sort(failed, std::greater{});
    failed.resize(static_cast<std::size_t>(settings.breaker_failures));
    const auto registered =
        std::ranges::count_if(supply.registrations, [&](const Outcome& o) { return o.at >= failed.back(); });
    if (registered >= settings.breaker_failures) return {};
    breaker.open = true;
    breaker.opened = now;
    breaker.pause = settings.breaker_first_pause;
    breaker.next_canary = now + breaker.pause;
    return {0, {Rule::breaker_opens, {std::ssize(failed), registered}}};
  }
  const auto minutes = std::chrono::ceil<std::chrono::minutes>(now - breaker.opened).count();
  if (supply.waiting > 0) return {0, {Rule::breaker_waits, {minutes}}};
  if (now < breaker.next_canary) {
    return {0, {Rule::breaker_pauses, {minutes, (breaker.next_canary - now).count()}}};
  }
  return {1, {Rule::breaker_tries, {minutes}}};
}

BreakerSays refused(const History& history, const Group& group, const std::string& place, Time now) {
  const auto* refusal = found_in(history.refusals, std::pair(group, place));
  if (!refusal) return {};
  const auto& [until, pause, by_quota, words] = *refusal;
  const auto rule = by_quota ? Rule::quota_refused : Rule::refused;
  if (now < until) return {0, {rule, {(until - now).count()}, words}};
  return {1, {rule, {}, words}};
}

bool names_quota(std::string_view words) {
  return words.find("exceeded quota") != std::string_view::npos;
}

void note_refusal(History& history, const Group& group, const std::string& place,
                  const std::optional<std::string>& words, const PolicySettings& settings, Time now) {
  if (!words || settings.breaker_failures == 0) {
    history.refusals.erase({group, place});
    return;
  }
  auto& refusal = history.refusals[{group, place}];
  refusal.words = *words;
  refusal.by_quota = names_quota(*words);
  // A quota has room again as soon as a pod ends.
  refusal.pause = refusal.by_quota              ? k_quota_pause
                  : refusal.pause == Seconds(0) ? settings.breaker_first_pause
                                                : next_pause(refusal.pause, settings);
  refusal.until = now + refusal.pause;
}

Seconds next_pause(Seconds pause, const PolicySettings& settings) {
  return std::min(std::max(pause * 2, Seconds(1)), settings.breaker_longest_pause);
}

void canary_sent(Breaker& breaker, const PolicySettings& settings, Time now) {
  breaker.pause = next_pause(breaker.pause, settings);
  breaker.next_canary = now + breaker.pause;
}

}  // namespace glidepod::provisioner
