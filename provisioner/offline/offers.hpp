#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "provisioner/demand/demand.hpp"
#include "provisioner/offline/ads.hpp"

namespace glidepod::provisioner {

// What is read of the pool besides the queues.
struct Negotiation {
  Board board;
  // When the last cycle that is over looked at who uses what (condor::Pool::cycles); none: no cycle is known.
  std::optional<Time> cycle;
  Time over{};                      // when the pool was told of it
  bool pilots[2] = {false, false};  // whether there is a pilot's ad to copy: without GPUs, with
};

// The group's jobs as the negotiator has them. An ad counts once a cycle is over that began after it was put
// there; of an ad that counts, matches of that cycle and later.
Offers judge(const Group& group, std::int64_t queried, const Negotiation& seen);

enum class Offering : std::uint8_t { told, decides };
// Adds to each group what the negotiator makes of it. Where that decides, so many jobs are idle as offered
// pods were matched; all that the query has where every one of them was, since then nothing is known to limit
// them; one at most where no pilot has joined yet.
void add_offers(Demand& demand, const Negotiation& seen, Offering offering);

// What has begun since counts no more.
void begun_since(Demand& demand, const Group& group, std::int64_t claims);

// The ads that are to be put into the collector now, by group and number: so many as jobs are idle by the
// query, at most that many of a group and that many in all; those that are missing, or older than half of
// their lifetime. Of what is too much each owner gets as many, and the first of each group comes first.
std::vector<std::pair<Group, std::int64_t>> missing_offers(const std::map<Group, GroupDemand>& queried,
                                                           const Negotiation& seen, std::int64_t most,
                                                           Seconds lifetime, Time now, std::size_t in_all);

}  // namespace glidepod::provisioner
