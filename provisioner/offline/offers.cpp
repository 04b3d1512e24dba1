#include "provisioner/offline/offers.hpp"

#include <algorithm>

namespace glidepod::provisioner {

namespace {

// A cycle first fetches the ads, of which there may be thousands, and looks at its clock then.
constexpr Seconds k_fetch{20};

// So many of the owners' jobs, each one's in proportion.
void scale(std::map<std::string, std::int64_t>& owners, std::int64_t all, std::int64_t kept) {
  for (auto& [owner, idle] : owners) {
    const auto share = all > 0 ? kept * idle / all : 0;
    all -= idle;
    kept -= share;
    idle = share;
  }
}

void limit(GroupDemand& demand, std::int64_t idle) {
  if (idle >= demand.idle) return;
  scale(demand.owners, demand.idle, idle);
  demand.idle = idle;
  demand.unmaterialized = 0;
}

}  // namespace

std::string Offers::since() const {
  return begun > 0 ? fmt::format(", before {} more jobs began", begun) : "";
}

std::string Offers::to_string() const {
  switch (state) {
    case State::no_pilot:
      return fmt::format("{} idle jobs by the query; no pilot has joined whose ad could be offered", queried);
    case State::asked:
      return fmt::format("{} idle jobs by the query; no negotiation cycle has seen the pods that are offered",
                         queried);
    case State::answered:
      return fmt::format("{} idle jobs by the query; of {} pods offered the negotiator would use {}{}",
                         queried, offered, matched, since());
  }
  return {};
}

Offers judge(const Group& group, std::int64_t queried, const Negotiation& seen) {
  Offers result;
  result.queried = queried;
  result.over = seen.over;
  if (const auto found = seen.board.find(group.hash()); found != seen.board.end())
    for (const auto& offer : found->second) {
      if (!seen.cycle || *seen.cycle < offer.heard + k_fetch) continue;
      result.state = Offers::State::answered;
      ++result.offered;
      result.matched += offer.matched >= *seen.cycle;
    }
  else if (!seen.pilots[group.gpus > 0])
    result.state = Offers::State::no_pilot;
  return result;
}

void add_offers(Demand& demand, const Negotiation& seen, Offering offering) {
  for (auto& [group, jobs] : demand.groups) {
    auto offers = judge(group, jobs.idle, seen);
    offers.decides = offering == Offering::decides;
    if (offers.decides && offers.limits()) limit(jobs, offers.matched);
    if (offers.decides && offers.state == Offers::State::no_pilot) limit(jobs, 1);
    jobs.offers = offers;
  }
}

void begun_since(Demand& demand, const Group& group, std::int64_t claims) {
  const auto found = demand.groups.find(group);
  if (found == demand.groups.end() || !found->second.offers) return;
  auto& offers = *found->second.offers;
  if (!offers.decides || !offers.limits()) return;
  offers.begun = claims;
  limit(found->second, std::max<std::int64_t>(offers.matched - claims, 0));
}

std::vector<std::pair<Group, std::int64_t>> missing_offers(const std::map<Group, GroupDemand>& queried,
                                                           const Negotiation& seen, std::int64_t most,
                                                           Seconds lifetime, Time now, std::size_t in_all) {
  // By the owner who asks for it; where several do, by the one who has fewest so far.
  std::map<std::string_view, std::vector<std::pair<Group, std::int64_t>>> wanted;
  const auto list_for = [&wanted](const GroupDemand& jobs) -> auto& {
    auto* best = &wanted[jobs.owners.empty() ? std::string_view() : jobs.owners.begin()->first];
    for (const auto& [owner, idle] : jobs.owners)
      if (auto& own = wanted[owner]; own.size() < best->size()) best = &own;
    return *best;
  };
  bool more = true;
  for (std::int64_t number = 0; more; ++number) {
    more = false;
    for (const auto& [group, jobs] : queried) {
      if (number >= std::min(jobs.idle, most)) continue;
      more = true;
      const auto board = seen.board.find(group.hash());
      const auto fresh = [&](const Offer& offer) {
        return offer.number == number && now < offer.heard + lifetime / 2;
      };
      if (board == seen.board.end() || std::ranges::none_of(board->second, fresh))
        list_for(jobs).emplace_back(group, number);
    }
  }
  std::vector<std::pair<Group, std::int64_t>> result;
  more = true;
  for (std::size_t turn = 0; more; ++turn) {
    more = false;
    for (const auto& [owner, offers] : wanted) {
      if (turn >= offers.size()) continue;
      if (result.size() >= in_all) return result;
      more = true;
      result.push_back(offers[turn]);
    }
  }
  return result;
}

}  // namespace glidepod::provisioner
