#pragma once

#include <string>
#include <variant>
#include <vector>

#include "lib/base/child.hpp"
#include "pilot-agent/core/types.hpp"

namespace glidepod::agent {

// What the core wants done. The driver does these in order.
struct Patch {
  std::uint64_t attempt = 0;  // on_patched() is told this
  std::string container, image;
  bool once = false;  // the image's name was made up, and no container gets it again
  Time deadline;
};
// The sizes of containers, by the pod's subresource; on_resized() is told. One at a time.
struct Resize {
  std::uint64_t attempt = 0;
  std::vector<kube::SizeChange> changes;
  Time deadline;
};
// The annotation that says which images are wanted on the node; on_wanted() is told. One at a time.
struct Want {
  std::string text;
  Time deadline;
};
struct Launch {
  GlueId glue = 0;
  JobId job = 0;
  ClientId client = 0;
  std::vector<std::string> argv;  // of run; empty: what the client asked for
};
// Have this glue remove what a job of this user has left in shared places: answered as a launch is.
struct Clear {
  GlueId glue = 0;
  JobId job = 0;
  uid_t uid = 0;
  gid_t gid = 0;
};
// What does this image run by itself? on_image_known() or on_image_unknown() is told, at the deadline at the
// latest; of a client that is gone, nobody wants to know any more.
struct AskImage {
  ClientId client = 0;
  std::string image;
  Time deadline;
};
struct SignalJob {
  GlueId glue = 0;
  JobId job = 0;
  int number = 0;
};
struct SendBeat {  // on_beat() is told the same number when glue has sent it back
  GlueId glue = 0;
  std::uint64_t number = 0;
};
// Nothing of this job is left in its container; what became of it, its client is told after that.
struct JobOver {
  JobId job = 0;
};
struct Answer {
  ClientId client = 0;
  ExitStatus status;
  wire::Ran ran = {};
};
struct Fail {
  ClientId client = 0;
  bool of_job = true;  // and not of a test or of HTCondor's probe
  wire::Fault fault = wire::Fault::infrastructure;
  std::string message;
};
struct Vacate {  // its container is being stopped: have HTCondor end the job softly, with its own signal, and
                 // keep what it saves
  ClientId client = 0;
};
struct Hold {  // have HTCondor hold the job with this code; where that cannot be had, its end is status
  ClientId client = 0;
  ExitStatus status;
  int code = 0;
  int subcode = 0;
  std::string reason;
};
struct OpenSession {
  GlueId glue = 0;
  JobId job = 0;
  SessionId session = 0;
  ClientId client = 0;
};
struct CloseSession {
  GlueId glue = 0;
  JobId job = 0;
  SessionId session = 0;
};
struct Refuse {  // a visit, or what is left of it
  ClientId client = 0;
  wire::Fault fault = wire::Fault::infrastructure;
  std::string message;
};
struct FinishGlue {
  GlueId glue = 0;
};
struct DropGlue {  // close its connection
  GlueId glue = 0;
};
struct KillGlue {  // it does not answer: kill its process, and with it the container; close its connection
  GlueId glue = 0;
};
struct GiveUp {  // this pilot fails one job after another: take no more, end as failed
  std::string reason;
};
struct Note {
  enum class Level : std::uint8_t { info, warning };
  Level level = Level::info;
  std::string text;
};
using Action = std::variant<Patch, Resize, Want, Launch, Clear, AskImage, SignalJob, SendBeat, JobOver,
                            Answer, Fail, Vacate, Hold, OpenSession, CloseSession, Refuse, FinishGlue,
                            DropGlue, KillGlue, GiveUp, Note>;

}  // namespace glidepod::agent
