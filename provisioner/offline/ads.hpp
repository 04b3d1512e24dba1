#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lib/condor/classad.hpp"
#include "provisioner/demand/group.hpp"
#include "provisioner/supply/slot.hpp"

namespace glidepod::provisioner {

// True in the offline ads that a provisioner puts into the collector: they are no slots.
inline constexpr const char* k_offline_mark = "GlidepodOffline";

// The ad of a pod of that group that is not there, in HTCondor's old syntax with an empty line behind it: a
// copy of a pilot's ad with the group's sizes, free, without what is that pilot's own, and offline. pilot: of
// a partitionable slot, with GPUs if the group has some; may be such a copy itself. number: from 0; of a
// group's ads the negotiator takes those with lower numbers first, in every cycle the same, and all of them
// after real slots, as long as NEGOTIATOR_PRE_JOB_RANK has My.Rank in it, as HTCondor's own does.
std::string offline_ad(const condor::Ad& pilot, const Group& group, std::int64_t number, Seconds lifetime);

// An offline ad as the collector has it. Times are the collector's and the negotiator's.
struct Offer {
  std::int64_t number = 0;
  Time heard{};    // when it was put there
  Time matched{};  // when a job was last matched to it; none: never since
};
// By the hash of their group.
using Board = std::map<std::string, std::vector<Offer>>;

// What is asked of each, for read_offer.
std::vector<std::string> offer_attributes();
// Adds the offer that the ad is; an ad that is none changes nothing.
void read_offer(const condor::Ad& ad, Board& board);

}  // namespace glidepod::provisioner
