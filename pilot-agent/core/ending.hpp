#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "lib/kube/pod.hpp"
#include "lib/wire/messages.hpp"
#include "pilot-agent/core/types.hpp"

namespace glidepod::agent {

// What is known of a job's end, and when the agent learnt or did it. All times are by the agent's clock.
struct EndFacts {
  // What glue has told.
  std::optional<wire::Exited> exited = {};  // the main process has ended
  Time exited_at{};
  std::optional<Time> ended_at = {};    // nothing of the job is left
  std::optional<Time> goodbye_at = {};  // its container is being stopped, and not by this agent
  std::optional<Time> gone_at = {};     // glue has gone without a goodbye
  bool given_up = false;                // the agent has killed glue
  // The signals that HTCondor or the agent sent to the job, with the last time of each number.
  std::map<int, Time> sent = {};
  // How the job's container ended, by the pod's status, which is matched by containerID. What the status has
  // not told by container_by, it is not expected to tell.
  std::optional<kube::Termination> container = {};
  Time container_by{};
  std::int64_t request_mib = 0;    // RequestMemory; 0: not known
  std::int64_t limit_kib = 0;      // the container's memory limit in the pod's spec; 0: none or not known
  std::int64_t last_seen_kib = 0;  // the job's memory when it was last looked at; 0: never
  // Set for a job that is killed for what it has on disk outside of its sandbox.
  struct Disk {
    std::int64_t used_kib = 0;
    bool complete = true;          // false: the job had at least used_kib
    std::int64_t limit_kib = 0;    // the disk of its slot
    std::int64_t request_kib = 0;  // RequestDisk; 0: not known
  };
  std::optional<Disk> disk = {};
};

// What these facts mean to HTCondor.
struct Verdict {
  enum class Kind : std::uint8_t {
    open,           // not decided yet: more facts may come until `until`
    ended,          // the job ended as `status` says
    out_of_memory,  // HTCondor is to hold the job, with `sentence` as the reason
    out_of_disk,    // likewise
    lost,           // the job has to run again: nobody knows how it ended, or it was stopped from outside
  };
  Kind kind = Kind::lost;
  ExitStatus status{};
  std::string sentence{};  // empty for open and ended
  Time until{};            // for open
};

// A pure function of the facts; pilot-agent/README.md has its table. Once it has decided, no later fact
// changes the verdict.
Verdict verdict_of(const EndFacts& facts, Time now);

// HTCondor's hold code for a job that lacks a resource, and the subcodes for memory and disk
// (condor_holdcodes.h). HTCondor 25 uses the subcode for memory, and its retry_request_memory looks for it
// (submit_utils.cpp).
constexpr int k_job_out_of_resources = 34;
constexpr int k_subcode_memory = 102;
constexpr int k_subcode_disk = 104;

}  // namespace glidepod::agent
