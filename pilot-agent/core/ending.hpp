#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/kube/pod.hpp"
#include "lib/wire/messages.hpp"

namespace glidepod::agent {

// What is known of a job's end.
struct EndFacts {
  std::optional<wire::Exited> exited;  // what glue said, if it came to that
  // How exactly the container that the job ran in ended, by its containerID; of use for an end by SIGKILL, or
  // without exited.
  std::optional<kube::Termination> container;
  bool goodbye = false;            // glue was asked to end before
  bool signalled = false;          // the job was sent a deadly signal at HTCondor's wish
  std::int64_t request_mib = 0;    // RequestMemory; 0: not known
  std::int64_t limit_kib = 0;      // of the container, by the pod's spec; 0: none or not known
  std::int64_t last_seen_kib = 0;  // the job's memory when it was last looked at; 0: never
  // Of a job that was killed for what it had on disk outside of its sandbox.
  struct Disk {
    std::int64_t used_kib = 0;
    bool complete = true;          // false: it had at least so much
    std::int64_t limit_kib = 0;    // what its slot has
    std::int64_t request_kib = 0;  // RequestDisk; 0: not known
  };
  std::optional<Disk> disk;
};

// What that means to HTCondor.
struct Verdict {
  enum class Kind : std::uint8_t {
    ended,          // as status says
    out_of_memory,  // to be held, with sentence as the reason
    out_of_disk,    // likewise
    lost,           // nobody knows, or the container was stopped from outside: it has to run again
  };
  Kind kind = Kind::lost;
  ExitStatus status{};
  std::string sentence;  // of all but ended
};

// The kernel's word counts only for the end that it explains: a job that lives on after one of its processes
// was killed for memory, and a container whose earlier process was, end as they end.
Verdict verdict_of(const EndFacts& facts);

// HTCondor's code for a hold for want of a resource, and its subcodes for memory, which 25 uses and what
// retry_request_memory looks for (condor_holdcodes.h, submit_utils.cpp), and for disk.
constexpr int k_job_out_of_resources = 34;
constexpr int k_subcode_memory = 102;
constexpr int k_subcode_disk = 104;

}  // namespace glidepod::agent
