#include "provisioner/simulate/judge.hpp"

#include <algorithm>

namespace glidepod::provisioner {

namespace {

// How long a change in the jobs that come may be felt.
constexpr Seconds k_settling{2 * 3600};

// What each gets if nobody can have more without somebody who has no more than that having less.
std::map<std::string, double> max_min(const std::map<std::string, double>& wants, double all) {
  std::vector<std::pair<double, std::string>> order;
  order.reserve(wants.size());
  for (const auto& [owner, want] : wants) order.emplace_back(want, owner);
  std::ranges::sort(order);
  std::map<std::string, double> result;
  auto owners = static_cast<double>(order.size());
  for (const auto& [want, owner] : order) {
    const auto got = std::min(want, all / owners--);
    result[owner] = got;
    all -= got;
  }
  return result;
}

}  // namespace

Judge::Judge(const Scenario& scenario) : scenario_(scenario) {}

double Judge::jain(const Shares& shares) {
  double sum = 0, squares = 0, owners = 0;
  for (const auto& [owner, share] : shares) {
    if (share.fair <= 0) continue;
    const auto part = share.had / share.fair;
    sum += part;
    squares += part * part;
    ++owners;
  }
  return squares > 0 ? sum * sum / (owners * squares) : 1;
}

void Judge::share_out(const Demand& demand, const Supply& supply) {
  std::map<std::string, double> wants;
  double all = 0;
  for (const auto& [owner, pods] : supply.claimed_by_owner) {
    wants[owner] += static_cast<double>(pods);
    all += static_cast<double>(pods);
  }
  for (const auto& [group, jobs] : demand.groups)
    for (const auto& [owner, idle] : jobs.owners) wants[owner] += static_cast<double>(idle);
  const auto fair = max_min(wants, all);
  for (const auto& [owner, want] : wants)
    for (auto* shares : {&shares_, &of_hour_}) {
      const auto claimed = supply.claimed_by_owner.find(owner);
      if (claimed != supply.claimed_by_owner.end())
        (*shares)[owner].had += static_cast<double>(claimed->second);
      (*shares)[owner].fair += fair.at(owner);
    }
}

// Nothing has begun or ended in a while.
bool Judge::steady() const {
  const auto felt = [this](Seconds change) { return change <= now_ && now_ < change + k_settling; };
  if (felt(Seconds(0))) return false;
  return std::ranges::none_of(scenario_.streams, [&felt](const JobStream& stream) {
    return felt(stream.start) || (stream.until > Seconds(0) && felt(stream.until)) ||
           (stream.leave > Seconds(0) && felt(stream.leave));
  });
}

bool Judge::Course::swings(double now) {
  if (points++ == 0) least = most = now;
  sum += now;
  const auto step = std::max(10.0, sum / static_cast<double>(points) / 2);
  least = std::min(least, now);
  most = std::max(most, now);
  const auto before = direction;
  if (direction <= 0 && now - least > step)
    direction = 1;
  else if (direction >= 0 && most - now > step)
    direction = -1;
  if (direction == before) return false;
  least = most = now;
  return before != 0 && ++turns > 1;
}

void Judge::operator()(const Demand& demand, const Supply& supply, const Plan& plan) {
  // With named places those that have ended are removed, too.
  taken_back_ += std::ranges::count_if(plan.removals, [&supply](const Removal& removal) {
    return std::ranges::find(supply.ended, removal.pod, &EndedPod::name) == supply.ended.end();
  });
  const bool as_before = steady();
  for (const auto& [group, pods] : supply.groups) {
    const auto all = static_cast<double>(pods.live());
    held_ += all - static_cast<double>(pods.unschedulable);
    worked_ += static_cast<double>(pods.claimed);
    if (!as_before) {
      courses_[group] = {};
    } else if (courses_[group].swings(all)) {
      ++swings_;
      last_swing_ =
          fmt::format("{:d}:{:02d} in {}", now_.count() / 3600, now_.count() / 60 % 60, group.name());
    }
  }
  if (!plan.blind) share_out(demand, supply);
  now_ += scenario_.cycle;
  if (now_ % Seconds(3600) < scenario_.cycle)
    worst_hour_ = std::min(worst_hour_, jain(std::exchange(of_hour_, {})));
}

Judgement Judge::judgement(const std::vector<Sample>& samples) const {
  Judgement result;
  if (held_ > 0) result.waste = 1 - worked_ / held_;
  result.fairness = jain(shares_);
  result.worst_hour = worst_hour_;
  for (const auto& [owner, share] : shares_) {
    const auto part = share.fair > 0 ? share.had / share.fair : 1;
    if (!result.last_owner.empty() && part >= result.last_share) continue;
    result.last_share = part;
    result.last_owner = owner;
  }
  result.swings = swings_;
  result.last_swing = last_swing_;
  result.taken_back = taken_back_;
  result.ended_unused = samples.back().wasted_pods;
  result.submitted = samples.back().submitted;
  return result;
}

std::string to_text(const Judgement& j) {
  return fmt::format(
      "waste {:.1f} % of the time on nodes; fairness {:.3f} ({:.3f} in the worst hour; least: {} with {:.0f} "
      "% of a fair share);\nswings: {}{}; of {} pods {} ended without having had a job, {} were taken back\n",
      100 * j.waste, j.fairness, j.worst_hour, j.last_owner, 100 * j.last_share, j.swings,
      j.swings > 0 ? fmt::format(" (the last at {})", j.last_swing) : "", j.submitted, j.ended_unused,
      j.taken_back);
}

}  // namespace glidepod::provisioner
