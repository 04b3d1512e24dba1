#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace glidepod::agent {

// The pilot's status (status.hpp) as attributes of its slots: what a STARTD_CRON job prints, one block for
// each payload container and each place in the queue, each of which HTCondor merges into the slot that has
// this job; one for all slots, and one more for the partitionable one. A block always comes, and with all
// attributes, since HTCondor keeps what was there before.
//
//   GlidepodJob        "12.0": the job that the others are about
//   GlidepodState      "waiting" (for a container), "pulling" (its image, beside the pod), or its
//                      container's state: "switching", "asking", "reserved", "running", "draining"
//   GlidepodSince      since when it is in that state, in seconds since 1970
//   GlidepodContainer  "payload-0"; undefined while it waits for one
//   GlidepodImage      the image that it runs in or is to run in, as in the pod
//   GlidepodDigest     "sha256:..." of it, once that is known
//   GlidepodHow        how the container came to have the image: "warm", "fresh", "switched" or "pulled"
//   GlidepodBindTime   how long that took, in seconds
//   GlidepodWaitsFor   what it waits for, in words, with the kubelet's
//
// in each slot
//
//   GlidepodDoubtfulImages  "docker://a docker://b": images, as jobs name them, that could not be had here
//   and
//                      are not tried now; START refuses their jobs, so that they hold no slot meanwhile
//
// and in the partitionable slot
//
//   GlidepodContainers "payload-0=running payload-1=idle"
//   GlidepodFailures   failures of the infrastructure in a row
//   GlidepodHeld       the last job that was put on hold for the memory or disk it used, and the numbers
//   GlidepodBinds      "warm=3 fresh=0 switched=2 pulled=0 user=1 infrastructure=0 doubt=0": jobs that
//                      came by a container, by how, and those that did not, by whose fault, since the
//                      agent started
//   GlidepodBindsWithin "0.1=3 0.5=3 1=5 ...": of the former those that took at most so many seconds
//   GlidepodBindSeconds what they took in all
std::string slot_attributes(const nlohmann::json& status);

// A ClassAd string literal that old and new syntax read alike, on one line: quotes are escaped, backslashes
// become slashes, control characters blanks; at most 1000 bytes.
std::string ad_string(std::string_view text);

}  // namespace glidepod::agent
