// Images that are pulled beside the pod: which ones the agent asks for, what the answers mean, and how long
// it waits for them.

#include "pilot-agent/core/pulls.hpp"

#include <algorithm>
#include <array>

#include "pilot-agent/core/words.hpp"

namespace glidepod::agent {

using kube::PulledImage;
using kube::WantedImage;

namespace {
// After a question without answer, the agent asks nothing for this time, so that jobs go on at once.
constexpr std::chrono::seconds k_quiet{60};

std::chrono::seconds answer_time(const Policy& policy) {
  return std::min(policy.puller_answer, policy.bind_deadline / 4);
}
// The time for a pull beside the pod. In the rest of a request's time a container can start the image.
std::chrono::seconds pull_time(const Policy& policy) {
  return policy.bind_deadline * 19 / 20;
}
}  // namespace

std::string_view name_of(PullState state) {
  constexpr std::array<std::string_view, k_pull_states> k_names = {"none", "asked", "pulling", "failing",
                                                                   "silent"};
  return k_names.at(static_cast<std::size_t>(state));
}

std::string_view name_of(PullEvent event) {
  constexpr std::array<std::string_view, k_pull_events> k_names = {"wanted", "pulling", "ready", "trouble",
                                                                   "lost",   "refused", "time",  "unwanted"};
  return k_names.at(static_cast<std::size_t>(event));
}

std::span<const PullTransition> pull_transitions() {
  using enum PullState;
  using E = PullEvent;
  static constexpr auto k_all = std::to_array<PullTransition>({
      {none, E::wanted, asked},    {asked, E::pulling, pulling}, {asked, E::ready, none},
      {asked, E::trouble, none},   {asked, E::trouble, failing}, {asked, E::lost, silent},
      {asked, E::refused, silent}, {asked, E::time, silent},     {asked, E::unwanted, none},
      {pulling, E::ready, none},   {pulling, E::trouble, none},  {pulling, E::trouble, failing},
      {pulling, E::lost, silent},  {pulling, E::time, none},     {pulling, E::unwanted, none},
      {failing, E::ready, none},   {failing, E::trouble, none},  {failing, E::lost, silent},
      {failing, E::time, none},    {failing, E::unwanted, none}, {silent, E::unwanted, none},
  });
  return k_all;
}

void Pulls::begin(const std::vector<WantedImage>& wanted, Credentials credentials) {
  credentials_ = credentials;
  for (const WantedImage& left : wanted) posted_.push_back({left});
}

void Pulls::become(Entry entry, PullState state, PullEvent event) {
  const PullTransition transition{entry->second.state, event, state};
  entry->second.state = state;
  const std::string image = entry->first;
  const bool known = std::ranges::find(pull_transitions(), transition) != pull_transitions().end();
  const auto level = known && state != PullState::silent ? Note::Level::info : Note::Level::warning;
  notes_.push_back({level, fmt::format("event=pull image={} by={} state={} reason={}", word(image),
                                       name_of(event), name_of(state), word(entry->second.trouble))});
  if (state == PullState::none) pulls_.erase(entry);
  if (observer_) observer_(image, transition);
}

const Pulls::Pull* Pulls::find(const Image& image) const {
  const auto found = image.is_home() ? pulls_.end() : pulls_.find(image.name());
  return found == pulls_.end() ? nullptr : &found->second;
}

bool Pulls::may_switch(const Image& image, const std::string& name, Time now) {
  if (!policy_.pullers || image.is_home() || on_node_.contains(image.name())) return true;
  if (const Pull* pull = find(image)) return pull->state == PullState::silent;
  if (now < quiet_until_ || pulls_.size() >= kube::k_most_wanted) return true;
  Pull pull;
  pull.wanted = {name, fmt::format("{}-p{}", policy_.nonce_prefix, ++last_ask_)};
  pull.until = now + answer_time(policy_);
  become(pulls_.emplace(image.name(), std::move(pull)).first, PullState::asked, PullEvent::wanted);
  return false;
}

void Pulls::seen(const Image& image) {
  if (policy_.pullers && !image.is_home()) on_node_.insert(image.name());
}

void Pulls::missed(const Image& image) {
  if (!image.is_home()) on_node_.erase(image.name());
}

void Pulls::told(const std::vector<PulledImage>& answers, Time now) {
  for (const PulledImage& answer : answers) {
    const auto entry =
        std::ranges::find_if(pulls_, [&](const auto& one) { return one.second.wanted == answer.wanted; });
    if (entry != pulls_.end() && entry->second.state != PullState::silent) answered(entry, answer, now);
  }
}

void Pulls::answered(Entry entry, const PulledImage& answer, Time now) {
  Pull& pull = entry->second;
  switch (answer.state) {
    case PulledImage::State::ready:
      on_node_.insert(entry->first);
      for (Posted& posted : posted_) posted.ready |= posted.wanted == pull.wanted;
      return become(entry, PullState::none, PullEvent::ready);
    case PulledImage::State::lost:
      pull.trouble = answer.reason;
      return become(entry, PullState::silent, PullEvent::lost);
    case PulledImage::State::pulling:
      break;
    case PulledImage::State::failed: {
      kube::ContainerStatus status;
      status.state = kube::ContainerStatus::State::waiting;
      status.reason = answer.reason;
      status.message = answer.message;
      const Trouble trouble = trouble_of(status, credentials_);
      if (trouble.kind == Trouble::Kind::none || trouble.kind == Trouble::Kind::busy) break;
      if (trouble.back_off && pull.state == PullState::failing) return;
      pull.trouble = trouble.message;
      pull.counts = trouble.counts;
      if (trouble.kind == Trouble::Kind::user) return give_up(entry, wire::Fault::user, PullEvent::trouble);
      if (pull.state != PullState::failing) pull.failing_since = now;
      pull.until = pull.failing_since + patience_with(trouble, policy_);
      if (pull.state == PullState::failing) return;
      return become(entry, PullState::failing, PullEvent::trouble);
    }
  }
  if (pull.state != PullState::asked) return;
  pull.until += pull_time(policy_) - answer_time(policy_);
  become(entry, PullState::pulling, PullEvent::pulling);
}

void Pulls::give_up(Entry entry, wire::Fault fault, PullEvent event) {
  verdicts_.push_back({Image(entry->first), fault, entry->second.trouble, entry->second.counts});
  become(entry, PullState::none, event);
}

void Pulls::on_time(Time now) {
  for (auto next = pulls_.begin(); next != pulls_.end();) {
    const Entry entry = next++;
    Pull& pull = entry->second;
    if (pull.state == PullState::silent || now < pull.until) continue;
    if (pull.state == PullState::asked) {
      quiet_until_ = now + k_quiet;
      become(entry, PullState::silent, PullEvent::time);
      continue;
    }
    // A container that pulled it would hold up all its neighbours, for as long again.
    if (pull.state == PullState::pulling)
      pull.trouble = fmt::format("the node has not pulled it within {} seconds", pull_time(policy_).count());
    give_up(entry, wire::Fault::infrastructure, PullEvent::time);
  }
}

void Pulls::keep_only(const std::set<std::string, std::less<>>& names) {
  for (auto next = pulls_.begin(); next != pulls_.end();) {
    const Entry entry = next++;
    if (!names.contains(entry->first)) become(entry, PullState::none, PullEvent::unwanted);
  }
}

std::vector<WantedImage> Pulls::open() const {
  std::vector<WantedImage> result;
  for (const auto& [image, pull] : pulls_)
    if (pull.state != PullState::silent) result.push_back(pull.wanted);
  return result;
}

std::optional<Want> Pulls::to_tell(Time now) {
  if (!policy_.pullers || in_flight_ || now < quiet_until_) return std::nullopt;
  const auto wanted = open();
  const auto stands = [this](const WantedImage& one) {
    return std::ranges::find(posted_, one, &Posted::wanted) != posted_.end();
  };
  const auto superfluous = [&wanted](const Posted& one) {
    return !one.ready && std::ranges::find(wanted, one.wanted) == wanted.end();
  };
  if (std::ranges::all_of(wanted, stands) && std::ranges::none_of(posted_, superfluous)) return std::nullopt;
  before_ = std::exchange(posted_, {});
  for (const WantedImage& one : wanted) posted_.push_back({one});
  in_flight_ = true;
  return Want{kube::wanted_text(wanted), now + answer_time(policy_)};
}

void Pulls::refused(const kube::Failure& failure, Time now) {
  in_flight_ = false;
  // If the API did not answer, the annotation may have the old or the new text.
  if (failure.rejected())
    posted_ = std::exchange(before_, {});
  else
    posted_.insert(posted_.end(), before_.begin(), before_.end());
  quiet_until_ = now + k_quiet;
  for (auto next = pulls_.begin(); next != pulls_.end();) {
    const Entry entry = next++;
    if (entry->second.state != PullState::asked) continue;
    entry->second.trouble = failure.to_string();
    become(entry, PullState::silent, PullEvent::refused);
  }
}

bool Pulls::waiting() const {
  return std::ranges::any_of(pulls_, [](const auto& one) { return one.second.state != PullState::silent; });
}

std::optional<Time> Pulls::next_deadline() const {
  std::optional<Time> first;
  for (const auto& [image, pull] : pulls_)
    if (pull.state != PullState::silent) first = std::min(first.value_or(pull.until), pull.until);
  return first;
}

}  // namespace glidepod::agent
