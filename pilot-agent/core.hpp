#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "lib/base/loop.hpp"
#include "lib/kube/failure.hpp"
#include "lib/kube/pod.hpp"
#include "lib/registry/document.hpp"
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
  std::string nonce_prefix = "g";            // of the tags made up, unlike that of any earlier agent
};

// What an apptainer asks for.
struct Request {
  ClientId client = 0;
  wire::Verb verb = wire::Verb::exec;
  bool any_image = false;  // a probe: whatever container is free
  std::string image;       // as written in a pod
  std::string owner;
  std::string job;  // HTCondor's number, for the log
  uid_t uid = 0;
  std::vector<std::string> arguments = {};  // of run: for the image's own command
  std::string sandbox = {};                 // HTCondor's, of the job
};

// Who asks to be let in beside a running job, by the kernel's word, and which job they mean.
struct Visit {
  ClientId client = 0;
  uid_t uid = 0;
  std::string sandbox;
  wire::Enter::What what = wire::Enter::What::session;
};

// What the core wants done. The driver does these in order.
struct Patch {
  std::uint64_t attempt = 0;  // on_patched() is told this
  std::string container, image;
  Time deadline;
};
struct Launch {
  GlueId glue = 0;
  JobId job = 0;
  ClientId client = 0;
  std::vector<std::string> argv;  // of run; empty: what the client asked for
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
struct Answer {
  ClientId client = 0;
  ExitStatus status;
};
struct Fail {
  ClientId client = 0;
  wire::Verb verb = wire::Verb::exec;
  wire::Fault fault = wire::Fault::infrastructure;
  std::string message;
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
struct Note {
  enum class Level : std::uint8_t { info, warning };
  Level level = Level::info;
  std::string text;
};
using Action = std::variant<Patch, Launch, AskImage, SignalJob, Answer, Fail, OpenSession, CloseSession,
                            Refuse, FinishGlue, DropGlue, Note>;

enum class State : std::uint8_t {
  absent,     // its glue is not connected; it will come by itself
  idle,       // can take a job
  switching,  // its image is being changed
  reserved,   // ready for whoever had it tested
  asking,     // ready, but for what its image runs by itself
  running,    // a job is under way
  draining,   // a job is being killed
  broken,     // what runs in it, or will, is not known
};
std::string_view name_of(State state);

// The state of all payload containers and of all who want one. No input or output: events and the time come
// in, actions go out. docs/architecture.md, "Which container is this?", has the rule that it keeps;
// internals.md beside this file has the reasons.
class Core {
 public:
  explicit Core(Policy policy, const std::vector<std::string>& containers = {});

  void on_bind(Request request, Time now);
  void on_client_gone(ClientId client, Time now);
  void on_client_signal(ClientId client, int number, Time now);

  void on_image_known(ClientId client, const registry::ImageCommand& command, Time now);
  void on_image_unknown(ClientId client, wire::Fault fault, const std::string& message, Time now);

  void on_hello(GlueId glue, const std::string& container, Time now);
  void on_goodbye(GlueId glue, Time now);
  void on_glue_lost(GlueId glue, Time now);
  void on_started(GlueId glue, JobId job, int pid, Time now);
  void on_job_ended(GlueId glue, const wire::JobEnded& ended, Time now);
  void on_launch_failed(GlueId glue, const wire::LaunchFailed& failed, Time now);

  void on_enter(const Visit& visit);
  // Whose session it is; 0 if they are gone.
  ClientId on_session_started(GlueId glue, JobId job, SessionId session);
  void on_session_ended(GlueId glue, const wire::SessionEnded& ended);
  void on_session_failed(GlueId glue, const wire::SessionFailed& failed);

  // The pod as it was when the agent started. Until then no image is switched. An earlier agent of this pod
  // may have ended in the middle of a switch; a young pod's status may still be empty.
  enum class Earlier : std::uint8_t { none, some };
  void on_first_pod(const kube::Pod& pod, Earlier agents, Time now);
  void on_pod(const kube::Pod& pod, Time now);
  void on_patched(std::uint64_t attempt, const std::variant<kube::Pod, kube::Failure>& answer, Time now);

  void on_time(Time now);
  // The pilot ends: jobs are killed, glues sent home, requests refused.
  void finish();

  std::vector<Action> take_actions() { return std::exchange(actions_, {}); }
  // Whether the pod's status is of interest now.
  bool watching() const;
  // When on_time() must be called at the latest.
  std::optional<Time> next_deadline() const;
  // For tests and the log.
  std::optional<State> state_of(std::string_view container) const;
  std::size_t connected() const;
  std::size_t containers() const { return containers_.size(); }

 private:
  struct Waiting {
    Request request;
    Time arrived;
    std::string asked;              // of run: by which name the registry was asked; empty: not yet
    std::vector<std::string> argv;  // of run: once it is known
  };
  // A container that is ready for a request which is not.
  struct Asking {
    Waiting waiting;
    std::string how;
    std::chrono::microseconds before{};
  };
  // Going to an image, perhaps by way of the pilot's own.
  struct Switch {
    std::string target;  // empty: the pilot's own image is the goal
    std::optional<Waiting> waiting;
    bool same_image = false;  // the container had this image, for another owner
    Time deadline;
    // The present step.
    bool home = false;  // it leads to the pilot's own image
    bool was_settled = false;
    bool patched = false;
    bool goodbye = false;
    bool by_status = false;  // a Hello alone does not prove what runs
    std::string reference;
    std::uint64_t attempt = 0;
    std::int64_t least_restarts = 0;
    std::optional<Time> pull_deadline;
    std::optional<Time> unclear_until;
    std::string trouble;  // last heard of pulling or starting
  };
  struct Reservation {
    Request request;
    std::string how;
    std::chrono::microseconds bound_in{};
    Time until;
  };
  struct Session {
    SessionId id = 0;
    ClientId client = 0;  // 0: gone, and glue is told
    wire::Enter::What what = wire::Enter::What::session;
  };
  struct Running {
    Request request;
    JobId job = 0;
    bool goodbye = false;
    bool signalled = false;  // at its client's wish
    std::vector<Session> sessions = {};
  };
  // A job that ended by a signal nobody here sent. If its glue says goodbye now, the container was stopped
  // from outside, and the job's end was not its own.
  struct Doubtful {
    Request request;
    ExitStatus status;
    Time until;
  };
  struct Container {
    std::string name;
    State state = State::absent;
    GlueId glue = 0;
    bool settled = true;                          // no patch may still be on its way to the kubelet
    bool spoiled = false;                         // must be made fresh before its next use
    std::string reference;                        // in the last patch that was taken
    std::string admitted;                         // what admission made of it, which may lead to a mirror
    std::string image;                            // as jobs ask for it; empty: none of theirs
    std::string owner;                            // of the last job since it started; empty: it had none
    std::int64_t instance = -1;                   // its restartCount, at least
    std::int64_t seen_restarts = -1;              // the highest restartCount a status showed
    std::optional<kube::ContainerStatus> status;  // the last one told; old unless the pod is watched
    Time last_used{};
    std::optional<Time> learning_until;  // its image's digest is awaited
    std::optional<Switch> change;
    std::optional<Reservation> reservation;
    std::optional<Asking> asking;
    std::optional<Running> running;
    std::optional<Doubtful> doubtful;
  };
  // A job whose glue vanished: the pod's status will tell why.
  struct LostJob {
    std::string container;
    std::int64_t instance = 0;
    Request request;
    Time until;
  };
  struct Known {
    std::string repository, digest;
  };

  // core.cpp: requests and the queue
  void dispatch(Time now);
  bool place(const Waiting& waiting, Time now);
  Container* reserved_for(const Request& request);
  Container* warm_for(const Request& request);
  Container* coldest(State state);
  void ready(Container& container, Waiting waiting, std::string_view how, std::chrono::microseconds before,
             Time now);
  void launch(Container& container, const Waiting& waiting, std::string_view how,
              std::chrono::microseconds bound_in, Time now);
  // core_run.cpp: what an image runs by itself
  enum class Command : std::uint8_t { known, asked, failed };
  Command ask(Waiting& waiting, Time now);
  bool take_command(Waiting& waiting, const registry::ImageCommand& command);
  const registry::ImageCommand* cached(std::string_view image) const;
  Waiting* find_waiting(ClientId client);
  void drop_waiting(ClientId client);
  void give_up_asking(Time now);
  std::string exact_name(const std::string& image) const;
  void fail(const Request& request, wire::Fault fault, std::string message);
  // core_switch.cpp
  void begin(Container& container, std::string target, std::optional<Waiting> waiting, Time now);
  void next_step(Container& container, Time now);
  void step_done(Container& container, Time now);
  void fail_switch(Container& container, wire::Fault fault, const std::string& message, State next, Time now);
  void judge(Container& container, const kube::ContainerStatus& status, Time now);
  bool shows_target(const Container& container, const kube::ContainerStatus& status) const;
  void learn(Container& container);
  std::optional<std::string> reference_for(const Container& container, const std::string& image);
  std::string home_reference();
  void look_at_home(const kube::Pod& pod);
  std::string nonce();
  void check_switch(Container& container, Time now);
  // core_jobs.cpp
  void glue_gone(Container& container, bool goodbye, Time now);
  void settle_doubt(Container& container, bool goodbye);
  void check_lost(const kube::Pod& pod, Time now);
  void settle_lost(const LostJob& lost, const kube::Termination* end);
  // core_sessions.cpp
  void end_visits(const Running& running);
  void leave_session(ClientId client);
  std::optional<Session> take_session(GlueId glue, JobId job, SessionId session);

  Container* find(std::string_view name);
  Container* find_glue(GlueId glue);
  Container* find_client(ClientId client);
  void act(Action action) { actions_.push_back(std::move(action)); }
  template <typename... Args>
  void note(fmt::format_string<Args...> format, Args&&... args) {
    act(Note{Note::Level::info, fmt::format(format, std::forward<Args>(args)...)});
  }
  template <typename... Args>
  void warn(fmt::format_string<Args...> format, Args&&... args) {
    act(Note{Note::Level::warning, fmt::format(format, std::forward<Args>(args)...)});
  }

  Policy policy_;
  bool names_given_ = false;
  bool pod_known_ = false;
  bool fresh_pod_ = false;
  bool finishing_ = false;
  std::string home_container_;  // the pilot's own
  std::string home_image_;      // the pilot's own, as in the pod's spec
  std::string home_image_id_;   // as in the pod's status
  Known home_;
  std::deque<Container> containers_;
  std::deque<Waiting> queue_;
  std::vector<LostJob> lost_jobs_;
  std::map<std::string, Known, std::less<>> known_;                      // by image as jobs ask for it
  std::deque<std::pair<std::string, registry::ImageCommand>> commands_;  // by digest, the oldest first
  std::vector<Action> actions_;
  std::uint64_t last_attempt_ = 0;
  std::uint64_t last_nonce_ = 0;
  JobId last_job_ = 0;
  SessionId last_session_ = 0;
};

}  // namespace glidepod::agent
