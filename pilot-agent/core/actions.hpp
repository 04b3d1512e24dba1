#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lib/base/child.hpp"
#include "pilot-agent/core/types.hpp"

namespace glidepod::agent {

// What the core wants done. The driver does the actions in order.
struct Patch {
  std::uint64_t attempt = 0;  // on_patched() gets this number
  std::string container, image;
  bool once = false;  // the image's name was made up, and no container gets it again
  Time deadline;
};
// Resizes containers by the pod's subresource resize; on_resized() is called. Only one is under way at a
// time.
struct Resize {
  std::uint64_t attempt = 0;
  std::vector<kube::SizeChange> changes;
  Time deadline;
};
// Writes the annotation that says which images are wanted on the node; on_wanted() is called. Only one is
// under way at a time.
struct Want {
  std::string text;
  Time deadline;
};
struct Launch {
  GlueId glue = 0;
  JobId job = 0;
  ClientId client = 0;
  std::vector<std::string> argv;  // the command line of `run`; empty: what the client asked for
};
// Has this glue remove what a job of this user has left in shared places. Glue answers as after a launch.
struct Clear {
  GlueId glue = 0;
  JobId job = 0;
  uid_t uid = 0;
  gid_t gid = 0;
};
// Asks a registry what this image runs by itself. on_image_known() or on_image_unknown() is called, at the
// deadline at the latest. For a client that is gone no answer is needed.
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
struct SendBeat {  // on_beat() gets the same number when glue has sent it back
  GlueId glue = 0;
  std::uint64_t number = 0;
};
// Nothing of this job is left in its container, or its glue clears no more. A later action tells the job's
// client how it ended.
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
  bool of_job = true;  // false: the request was a test, or HTCondor's probe
  wire::Fault fault = wire::Fault::infrastructure;
  std::string message;
};
// The job's container is being stopped. HTCondor is to end the job with the job's own signal, and to keep the
// files that the job saves.
struct Vacate {
  ClientId client = 0;
};
// HTCondor is to hold the job with this code. If HTCondor cannot do so, the job has ended with `status`.
struct Hold {
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
struct Refuse {  // refuse a visit, or end one that has begun
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
struct KillGlue {  // glue does not answer: kill its process, which ends the container; close its connection
  GlueId glue = 0;
};
struct GiveUp {  // this pilot fails one job after another: it takes no more jobs, and ends as failed
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

// The actions that the driver has yet to do. Each part of the core adds its own. An action that is answered
// has a number, which comes from here too, so that no answer fits two actions.
class Actions {
 public:
  void add(Action action) { all_.push_back(std::move(action)); }
  template <typename... Args>
  void note(fmt::format_string<Args...> format, Args&&... args) {
    add(Note{Note::Level::info, fmt::format(format, std::forward<Args>(args)...)});
  }
  template <typename... Args>
  void warn(fmt::format_string<Args...> format, Args&&... args) {
    add(Note{Note::Level::warning, fmt::format(format, std::forward<Args>(args)...)});
  }
  std::vector<Action> take() { return std::exchange(all_, {}); }

  std::uint64_t next_attempt() { return ++attempt_; }
  std::uint64_t next_beat() { return ++beat_; }
  JobId next_job() { return ++job_; }
  SessionId next_session() { return ++session_; }

 private:
  std::vector<Action> all_;
  std::uint64_t attempt_ = 0, beat_ = 0;
  JobId job_ = 0;
  SessionId session_ = 0;
};

}  // namespace glidepod::agent
