#include "provisioner/page/course.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace glidepod::provisioner {

using Json = nlohmann::json;

namespace {

std::int64_t size_of(const Decision& decision) {
  return decision.demand.idle + decision.supply.live();
}

void grow(std::int32_t& sum, std::int64_t by) {
  constexpr std::int64_t k_most = std::numeric_limits<std::int32_t>::max();
  sum = static_cast<std::int32_t>(std::min(sum + by, k_most));
}

}  // namespace

void Course::Point::add(const Decision& decision) {
  grow(idle, decision.demand.idle);
  grow(waiting, decision.supply.waiting);
  grow(unmatched, decision.supply.unmatched);
  grow(claimed, decision.supply.claimed);
  grow(broken, decision.supply.broken);
  grow(wasted, decision.supply.wasted);
}

bool Course::Point::something() const {
  return idle + std::int64_t{waiting} + unmatched + claimed + broken + wasted > 0;
}

void Course::Line::add(Point point) {
  // The clock may have been set back.
  while (!points.empty() && points.back().minute >= point.minute) points.pop_back();
  while (!points.empty() && points.front().minute <= point.minute - k_most_points) points.pop_front();
  points.push_back(point);
  if (point.something()) last_minute = point.minute;
}

Course::Line* Course::line_for(const Decision& decision, std::int64_t minute) {
  const auto hash = decision.group.hash();
  if (const auto found = lines_.find(hash); found != lines_.end()) return &found->second;
  if (lines_.size() >= k_most_groups) {
    const auto oldest = std::min_element(lines_.begin(), lines_.end(), [](const auto& a, const auto& b) {
      return a.second.last_minute < b.second.last_minute;
    });
    if (oldest->second.last_minute >= minute - 1) return nullptr;
    lines_.erase(oldest);
  }
  auto& line = lines_[hash];
  line.last_minute = minute;
  return &line;
}

void Course::add(const Plan& plan, Time now) {
  if (plan.blind) return;
  const auto minute = std::chrono::duration_cast<std::chrono::minutes>(now.time_since_epoch()).count();
  std::vector<const Decision*> order;
  for (const auto& decision : plan.decisions) order.push_back(&decision);
  std::stable_sort(order.begin(), order.end(),
                   [](const Decision* a, const Decision* b) { return size_of(*a) > size_of(*b); });
  Point all{minute};
  for (const auto* decision : order) {
    all.add(*decision);
    Point point{minute};
    point.add(*decision);
    if (auto* line = line_for(*decision, minute)) line->add(point);
  }
  all_.add(all);
  for (auto& [hash, line] : lines_)
    if (line.points.back().minute != minute) line.add({minute});
  std::erase_if(lines_,
                [minute](const auto& entry) { return entry.second.last_minute <= minute - k_most_points; });
}

std::optional<Json> Course::json(std::string_view hash) const {
  const auto found = lines_.find(hash);
  if (hash != "all" && found == lines_.end()) return std::nullopt;
  const auto& line = hash == "all" ? all_ : found->second;
  Json result = {{"columns", {"unix_time", "idle", "waiting", "unmatched", "claimed", "broken", "wasted"}},
                 {"points", Json::array()}};
  for (const auto& p : line.points)
    result["points"].push_back(
        {p.minute * 60, p.idle, p.waiting, p.unmatched, p.claimed, p.broken, p.wasted});
  return result;
}

}  // namespace glidepod::provisioner
