#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/loop.hpp"
#include "lib/kube/pod.hpp"
#include "lib/wire/messages.hpp"
#include "pilot-agent/core/image.hpp"

namespace glidepod::agent {

using Time = SteadyTime;
using ClientId = std::uint64_t;  // a connection of an apptainer; 0 is none
using GlueId = std::uint64_t;    // a connection of a glue; 0 is none
using JobId = std::uint64_t;
using SessionId = std::uint64_t;

struct Policy {
  enum class Reuse : std::uint8_t { owner, never };
  Reuse reuse = Reuse::owner;                // who may use a warm container
  std::chrono::seconds bind_deadline{600};   // longest time from a request to its launch
  std::chrono::seconds pull_patience{120};   // how long an image may fail to be pulled for a passing reason
  std::chrono::seconds reservation{60};      // how long a container is kept after `apptainer test`
  std::chrono::seconds status_patience{10};  // how long the pod's status may take to tell what happened
  // If a container has not changed for this time, the kubelet has acted on all patches: no request to the API
  // server (60 s) and no watch of the kubelet takes that long.
  std::chrono::seconds calm{90};
  std::chrono::seconds beat{20};             // time between two beats to a glue that has a job
  std::chrono::seconds beat_patience{90};    // how long a glue may leave beats unanswered
  std::chrono::seconds ending_patience{90};  // longest time from a job's end, or its kill, to JobEnded
  int give_up_after = 5;                     // failures of the infrastructure in a row; 0: never
  enum class First : std::uint8_t { use, prove };
  First first = First::use;                  // prove: a test switch comes before any use
  int spares = 0;                            // containers beyond the jobs that can run at a time
  std::chrono::seconds renewal_pause{600};   // pause after a spare container failed to get an image
  std::chrono::seconds renewal_calm{30};     // none is renewed so soon after a job was announced
  bool pullers = false;                      // images that may not be on the node are pulled beside the pod
  std::chrono::seconds puller_answer{20};    // how long a puller may take to say that it pulls
  bool resize = false;                       // a container gets its job's size, if the cluster serves that
  std::chrono::seconds resize_patience{10};  // how long that may take; then the job begins without
  std::string nonce_prefix = "g";            // begins each made-up tag; no earlier agent of the pod had it
};

// A user as whom jobs run.
struct User {
  uid_t uid = 0;
  gid_t gid = 0;
  bool clearing = false;  // a glue has been told to remove what this user's jobs left
  auto operator<=>(const User&) const =
      default;  // NOLINT(modernize-use-nullptr): of what the compiler writes
};

// A request of an apptainer.
struct Request {
  ClientId client = 0;
  wire::Verb verb = wire::Verb::exec;
  bool any_image = false;       // HTCondor's probe: any free container that no owner has
  Image asked = Image::home();  // by the name that it would have in a pod
  std::string owner;
  std::string job;  // HTCondor's number, for the log
  uid_t uid = 0;
  std::vector<std::string> arguments = {};  // of `run`: arguments for the image's own command
  bool runscript = false;                   // of `run`: glue finds the image's own command
  std::string sandbox = {};                 // the job's folder, made by HTCondor
  std::int64_t memory_mib = 0;              // the job's RequestMemory; 0: not known
  std::int64_t request_disk_kib = 0;        // the job's RequestDisk; 0: not known
  std::int64_t disk_kib = 0;                // the slot's disk; 0: not known
  std::chrono::seconds keep_idle{0};        // how long its claim is kept for the owner's next job
  std::string slot = {};                    // HTCondor's name of the slot, for people
  kube::Amount slot_size = {};              // the slot's CPUs and memory; 0: not known
  bool pilot = false;  // a pilot job: its own jobs may run in further payload containers of this pod
  JobId outer = 0;     // the pilot job whose job this is; 0: it is HTCondor's own job
  gid_t gid = 0;
  std::string named = {};  // the image as the job's ad has it: "docker://..."; empty: not known
};

// A request that has no container yet.
struct Waiting {
  Request request;
  Time arrived;
  bool beside = false;            // its image is or was to be pulled beside the pod
  std::string exact_name;         // of `run`: the name that the registry was asked about; empty: not yet
  std::vector<std::string> argv;  // of `run`: the command line, once it is known
};

// A request to be let in beside a running job: who asks (uid is what the kernel says) and for which job.
struct Visit {
  ClientId client = 0;
  uid_t uid = 0;
  std::string sandbox;
  wire::Enter::What what = wire::Enter::What::session;
};

}  // namespace glidepod::agent
