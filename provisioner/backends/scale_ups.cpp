#include "provisioner/backends/scale_ups.hpp"

#include <algorithm>
#include <array>

#include "lib/base/json.hpp"
#include "lib/base/log.hpp"
#include "lib/base/text.hpp"
#include "provisioner/backends/pod_state.hpp"

namespace glidepod::provisioner {

namespace {

using Json = nlohmann::json;

constexpr std::array<std::string_view, 2> k_reasons = {"TriggeredScaleUp", "Nominated"};
// The Cluster Autoscaler gives a node 15 minutes to come (--max-node-provision-time), and then says it anew.
constexpr Seconds k_believed{1200};
// An API server reads all Events of the namespace for each answer. Well below what take_back_after and
// unschedulable_limit are as a rule.
constexpr Seconds k_pause{240};
constexpr int k_page = 500;

// It has one of these times or another, by which API it was written.
Time time_of(const Json& event) {
  Time last = read_time(member(member(event, "metadata"), "creationTimestamp"));
  for (const auto* name : {"firstTimestamp", "lastTimestamp", "eventTime"})
    last = std::max(last, read_time(member(event, name)));
  return std::max(last, read_time(member(member(event, "series"), "lastObservedTime")));
}

}  // namespace

void ScaleUps::read(Time now, std::function<void()> done) {
  std::erase_if(events_, [now](const auto& event) { return now - event.second.at > k_believed; });
  const bool lately = now >= read_at_ && now - read_at_ < k_pause;
  if (forbidden_ || lately) return calls_.later(std::move(done));
  read_at_ = now;
  read_reason(0, now, std::move(done));
}

void ScaleUps::read_reason(std::size_t number, Time now, std::function<void()> done) {
  if (number == k_reasons.size()) return done();
  const auto path = fmt::format("/api/v1/namespaces/{}/events", name_space_);
  kube::read_list(calls_, {path, fmt::format("fieldSelector=reason%3D{}", k_reasons[number]), k_page},
                  {[] {}, [this, now](const Json& event) { take(event, now); },
                   [this, number, now, done = std::move(done)](const Result<std::string>& end) {
                     if (end) return read_reason(number + 1, now, done);
                     // What was known before still counts.
                     const auto status = kube::Failure::of(end.error()).status;
                     forbidden_ = status == 403 || status == 404 || status == 405;
                     spdlog::warn("event=scale_ups_not_seen why={}", glidepod::quoted(end.error().message()));
                     done();
                   }});
}

void ScaleUps::take(const Json& event, Time now) {
  const auto& about = member(event, "involvedObject");
  // Not every API knows the selector.
  if (std::ranges::find(k_reasons, text_view(event, "reason")) == k_reasons.end()) return;
  const auto uid = text_of(about, "uid");
  const auto at = time_of(event);
  if (uid.empty() || now - at > k_believed) return;
  auto& known = events_[uid];
  if (at < known.at) return;
  known = {std::min(at, now),
           one_line(fmt::format("{}: {}", text_view(event, "reason"), text_view(event, "message")), 200)};
}

std::string ScaleUps::words_for(const std::string& uid, Time now) const {
  const auto found = events_.find(uid);
  return found == events_.end() || now - found->second.at > k_believed ? std::string() : found->second.words;
}

}  // namespace glidepod::provisioner
