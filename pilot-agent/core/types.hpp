#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/loop.hpp"
#include "lib/kube/pod.hpp"
#include "lib/wire/messages.hpp"

namespace glidepod::agent {

using Time = SteadyTime;
using ClientId = std::uint64_t;  // a connection of an apptainer; 0 is none
using GlueId = std::uint64_t;    // a connection of a glue; 0 is none
using JobId = std::uint64_t;
using SessionId = std::uint64_t;

struct Policy {
  enum class Reuse : std::uint8_t { owner, never };
  Reuse reuse = Reuse::owner;                // who may use a warm container
  std::chrono::seconds bind_deadline{600};   // from a request to its launch
  std::chrono::seconds pull_patience{120};   // with an image that cannot be pulled for a passing reason
  std::chrono::seconds reservation{60};      // of a container, after `apptainer test`
  std::chrono::seconds status_patience{10};  // with a pod status that has yet to tell what happened
  // After this time without a change, the kubelet has acted on all that it was told: no request to the API
  // server (60 s) and no watch of the kubelet is that late.
  std::chrono::seconds calm{90};
  std::chrono::seconds beat{20};             // between two questions to a glue that has a job
  std::chrono::seconds beat_patience{90};    // with a glue that does not answer
  std::chrono::seconds ending_patience{90};  // from a job's end, or the order to kill it, to JobEnded
  int give_up_after = 5;                     // failures of the infrastructure in a row; 0: never
  enum class First : std::uint8_t { use, prove };
  First first = First::use;                  // prove: a test switch comes before any use
  int spares = 0;                            // containers beyond the jobs at a time
  std::chrono::seconds renewal_pause{600};   // with an image that a spare container failed to get
  bool pullers = false;                      // images that may not be on the node are pulled beside the pod
  std::chrono::seconds puller_answer{20};    // until somebody says that they are at it
  bool resize = false;                       // a container gets its job's size, where the cluster serves that
  std::chrono::seconds resize_patience{10};  // until it has it; then the job begins without
  std::string nonce_prefix = "g";            // of the tags made up, unlike that of any earlier agent
};

// As whom jobs run.
struct User {
  uid_t uid = 0;
  gid_t gid = 0;
  bool clearing = false;  // a glue has been told to remove what they left
  auto operator<=>(const User&) const =
      default;  // NOLINT(modernize-use-nullptr): of what the compiler writes
};

// A request of an apptainer.
struct Request {
  ClientId client = 0;
  wire::Verb verb = wire::Verb::exec;
  bool any_image = false;  // a probe: whatever container is free and nobody's
  std::string image;       // as written in a pod
  std::string owner;
  std::string job;  // HTCondor's number, for the log
  uid_t uid = 0;
  std::vector<std::string> arguments = {};  // of run: for the image's own command
  std::string sandbox = {};                 // HTCondor's, of the job
  std::int64_t memory_mib = 0;              // what it asked for; 0: not known
  std::int64_t request_disk_kib = 0;        // likewise
  std::int64_t disk_kib = 0;                // what its slot has; 0: not known
  std::string slot = {};                    // HTCondor's name of it, for people
  kube::Amount slot_size = {};              // its CPUs and memory; 0: not known
  bool pilot = false;  // its job may have jobs of its own run in further payload containers of this pod
  JobId outer = 0;     // the pilot job whose job this is; 0: HTCondor's own
  gid_t gid = 0;
  std::string named = {};  // the image as the job's ad has it: "docker://..."; empty: not known
};

// A request that has no container yet.
struct Waiting {
  Request request;
  Time arrived;
  bool beside = false;            // its image is, or was, asked for beside the pod
  std::string asked;              // of run: by which name the registry was asked; empty: not yet
  std::vector<std::string> argv;  // of run: once it is known
};

// A request to be let in beside a running job: who asks, by the kernel's word, and for which job.
struct Visit {
  ClientId client = 0;
  uid_t uid = 0;
  std::string sandbox;
  wire::Enter::What what = wire::Enter::What::session;
};

}  // namespace glidepod::agent
