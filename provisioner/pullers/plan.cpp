#include "provisioner/pullers/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "provisioner/demand/group.hpp"

namespace glidepod::provisioner {

using kube::PulledImage;
using kube::WantedImage;
using State = PulledImage::State;

namespace {

// What was once told of a question as its end holds for ever: a pilot that wants the image again asks anew.
const PulledImage* end_of(const PullingPilot& pilot, const WantedImage& wanted) {
  const auto found = std::ranges::find(pilot.told, wanted, &PulledImage::wanted);
  const bool over =
      found != pilot.told.end() && (found->state == State::ready || found->state == State::lost);
  return over ? &*found : nullptr;
}

class Planner {
 public:
  Planner(const std::map<std::string, Puller>& pullers, const std::map<std::string, std::int64_t>& made,
          const PullLimits& limits, std::string_view app_name)
      : pullers_(pullers), made_(made), limits_(limits), app_name_(app_name) {
    for (const auto& [name, puller] : pullers) count(puller.node);
  }

  PulledImage answer(const PullingPilot& pilot, const WantedImage& wanted) {
    if (const auto* end = end_of(pilot, wanted)) return *end;
    const PullKey key{pilot.node, wanted.image, pilot.policy, pilot.secrets};
    const std::string name = key.pod_name(app_name_);
    if (const auto found = pullers_.find(name); found != pullers_.end()) {
      const Puller& puller = found->second;
      if (puller.node != key.node || puller.image != key.image)  // as good as impossible by chance
        return {wanted, State::lost, "Taken", {}};
      wanted_.insert(name);
      // A puller that is being deleted was nobody's any more: a new one comes after it.
      if (puller.ending) return {wanted, State::pulling, {}, {}};
      return {wanted, puller.state, puller.reason, puller.message};
    }
    if (!wanted_.contains(name)) {
      if (at(made_, key.node) >= limits_.per_minute || at(on_node_, key.node) >= limits_.per_node ||
          in_all_ >= limits_.in_all)
        return {wanted, State::lost, "TooMany", "no more pullers are allowed"};
      count(key.node);
      ++made_[key.node];
      wanted_.insert(name);
      plan.create.push_back({key, name, pilot.pilot_image});
    }
    return {wanted, State::pulling, {}, {}};
  }

  void remove_unwanted() {
    for (const auto& [name, puller] : pullers_)
      if (!puller.ending && !wanted_.contains(name)) plan.remove.push_back(name);
  }

  PullPlan plan;

 private:
  void count(const std::string& node) {
    ++on_node_[node];
    ++in_all_;
  }
  static std::int64_t at(const std::map<std::string, std::int64_t>& counts, const std::string& node) {
    const auto found = counts.find(node);
    return found == counts.end() ? 0 : found->second;
  }

  const std::map<std::string, Puller>& pullers_;
  std::map<std::string, std::int64_t> made_, on_node_;
  const PullLimits& limits_;
  std::string_view app_name_;
  std::int64_t in_all_ = 0;
  std::set<std::string> wanted_;  // by pods' names
};

}  // namespace

std::string PullKey::pod_name(std::string_view app_name) const {
  std::string all = node + '\n' + image + '\n' + policy;
  for (const auto& secret : secrets) all += '\n' + secret;
  const auto tail = fmt::format("-pull-{:016x}", stable_hash(all));
  return fmt::format("{}{}", app_name.substr(0, 63 - tail.size()), tail);
}

PullPlan plan_pulls(const std::map<std::string, PullingPilot>& pilots,
                    const std::map<std::string, Puller>& pullers,
                    const std::map<std::string, std::int64_t>& made, const PullLimits& limits,
                    std::string_view app_name) {
  Planner planner(pullers, made, limits, app_name);
  std::map<std::string, std::vector<PulledImage>> answers;
  // The first wish of each pilot, then the second: one that wants much cannot take all there is.
  for (std::size_t i = 0; i < kube::k_most_wanted; ++i)
    for (const auto& [name, pilot] : pilots)
      if (i < pilot.wanted.size()) answers[name].push_back(planner.answer(pilot, pilot.wanted[i]));
  for (const auto& [name, pilot] : pilots) {
    std::string text = kube::pulled_text(answers[name]);
    if (kube::read_pulled(text) != pilot.told) planner.plan.annotate[name] = std::move(text);
  }
  planner.remove_unwanted();
  return std::move(planner.plan);
}

}  // namespace glidepod::provisioner
