#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "lib/kube/pod.hpp"
#include "lib/wire/messages.hpp"
#include "pilot-agent/core/types.hpp"

namespace glidepod::agent {

// What is known of a job's end, and when it was told or done. Times are the agent's.
struct EndFacts {
  // Glue's words.
  std::optional<wire::Exited> exited = {};  // the main process has ended
  Time exited_at{};
  std::optional<Time> ended_at = {};    // nothing of the job is left
  std::optional<Time> goodbye_at = {};  // its container is being stopped, by nobody here
  std::optional<Time> gone_at = {};     // glue has gone without a goodbye
  bool given_up = false;                // the agent has killed it
  // Signals that the job was sent, HTCondor's and the agent's own: the last of each number.
  std::map<int, Time> sent = {};
  // How exactly the container that the job ran in ended, by its containerID, in the pod's status. Told by
  // then, or never.
  std::optional<kube::Termination> container = {};
  Time container_by{};
  std::int64_t request_mib = 0;    // RequestMemory; 0: not known
  std::int64_t limit_kib = 0;      // of the container, by the pod's spec; 0: none or not known
  std::int64_t last_seen_kib = 0;  // the job's memory when it was last looked at; 0: never
  // Of a job that is killed for what it has on disk outside of its sandbox.
  struct Disk {
    std::int64_t used_kib = 0;
    bool complete = true;          // false: it had at least so much
    std::int64_t limit_kib = 0;    // what its slot has
    std::int64_t request_kib = 0;  // RequestDisk; 0: not known
  };
  std::optional<Disk> disk = {};
};

// What that means to HTCondor.
struct Verdict {
  enum class Kind : std::uint8_t {
    open,           // not decided before `until`, unless more is known
    ended,          // as status says
    out_of_memory,  // to be held, with sentence as the reason
    out_of_disk,    // likewise
    lost,           // nobody knows, or the container was stopped from outside: it has to run again
  };
  Kind kind = Kind::lost;
  ExitStatus status{};
  std::string sentence{};  // of all but open and ended
  Time until{};            // of open
};

// A pure function of the facts; pilot-agent/README.md has its table. What it has decided once, no later fact
// changes.
Verdict verdict_of(const EndFacts& facts, Time now);

// HTCondor's code for a hold for want of a resource, and its subcodes for memory, which 25 uses and what
// retry_request_memory looks for (condor_holdcodes.h, submit_utils.cpp), and for disk.
constexpr int k_job_out_of_resources = 34;
constexpr int k_subcode_memory = 102;
constexpr int k_subcode_disk = 104;

}  // namespace glidepod::agent
