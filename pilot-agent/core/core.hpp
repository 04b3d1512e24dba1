#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/kube/pod.hpp"
#include "lib/registry/document.hpp"
#include "lib/wire/messages.hpp"
#include "pilot-agent/core/actions.hpp"
#include "pilot-agent/core/answers.hpp"
#include "pilot-agent/core/beside.hpp"
#include "pilot-agent/core/births.hpp"
#include "pilot-agent/core/containers.hpp"
#include "pilot-agent/core/health.hpp"
#include "pilot-agent/core/image.hpp"
#include "pilot-agent/core/image_commands.hpp"
#include "pilot-agent/core/leftovers.hpp"
#include "pilot-agent/core/pulls.hpp"
#include "pilot-agent/core/queue.hpp"
#include "pilot-agent/core/references.hpp"
#include "pilot-agent/core/resizes.hpp"
#include "pilot-agent/core/snapshot.hpp"
#include "pilot-agent/core/spares.hpp"
#include "pilot-agent/core/state.hpp"
#include "pilot-agent/core/switches.hpp"
#include "pilot-agent/core/transitions.hpp"
#include "pilot-agent/core/types.hpp"
#include "pilot-agent/core/visits.hpp"

namespace glidepod::agent {

// The state of all payload containers, and of all requests for one. The core does no input or output: events
// and the time come in, actions go out. Each event first goes to the container that it is about, which has
// one function for each state; then the core looks at the queue once. What has a state or rules of its own is
// a part, which knows the parts it needs and nothing of the core: it returns what an event has come to.
// pilot-agent/README.md has the states and the rules.
class Core {
 public:
  explicit Core(Policy policy, const std::vector<std::string>& containers = {});
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // HTCondor has begun to bring a job's input files. The job will bind when they are there, or never.
  void on_announce(Request job, Time now);
  void on_bind(Request request, Time now);
  // Why on_bind() fails such a request whatever its image; empty: it does not.
  std::string_view refusal(const Request& request) const;
  void on_client_gone(ClientId client, Time now);
  void on_client_signal(ClientId client, int number, Time now);

  void on_image_known(ClientId client, const registry::ImageCommand& command, Time now);
  void on_image_unknown(ClientId client, wire::Fault fault, const std::string& message, Time now);

  // instance: the id of the container that this glue is in; empty: it is not known.
  // empty: the image has no file.
  void on_hello(GlueId glue, const std::string& container, const std::string& instance, Time now,
                bool empty = false);
  void on_goodbye(GlueId glue, Time now);
  void on_glue_lost(GlueId glue, Time now);
  void on_beat(GlueId glue, const wire::Beat& beat, Time now);
  void on_started(GlueId glue, JobId job, int pid, Time now);
  void on_exited(GlueId glue, const wire::Exited& exited, Time now);
  void on_job_ended(GlueId glue, const wire::JobEnded& ended, Time now);
  void on_launch_failed(GlueId glue, const wire::LaunchFailed& failed, Time now);

  void on_enter(const Visit& visit);
  // What glue tells of sessions goes here.
  Visits& visits() { return visits_; }

  // on_first_pod() gets the pod as it was when the agent started. Before that the core switches no image. An
  // earlier agent of this pod may have ended in the middle of a switch. A young pod's status may still be
  // empty.
  enum class Earlier : std::uint8_t { none, some };
  // To be called before on_first_pod(). users: the users() of earlier agents of this pod, which did not see
  // the jobs of these users end.
  void on_earlier_users(const std::set<User>& users) { leftovers_.inherit(users); }
  void on_first_pod(const kube::Pod& pod, Earlier agents, Time now);
  void on_pod(const kube::Pod& pod, Time now);
  // The API's answers: the pod as it is now, or a kube::Failure.
  void on_patched(std::uint64_t attempt, const Result<kube::Pod>& answer, Time now);
  void on_resized(std::uint64_t attempt, const Result<kube::Pod>& answer, Time now);
  void on_wanted(const Result<void>& answer, Time now);

  void on_time(Time now);
  // The pilot is about to end. Requests whose job has not begun are refused, now and later. Running jobs go
  // on.
  void drain(Time now);
  // An operator wants the pilot to end after its last job: no job of HTCondor's begins any more. Running jobs
  // go on, and a pilot job gets containers for its own jobs as before.
  void withdraw();
  // As drain(), when no job is left. The pod ends only when every glue has been told to finish, so every glue
  // must connect first; and while a pod's last sidecar does not run, the kubelet does not see that the pilot
  // has ended. Therefore a container gets the pilot's own image if it cannot start its present
  // image, or has yet to start the image that the pod was made with.
  void call_home(Time now);
  // The pilot ends: jobs are killed, glues are told to finish, requests are refused.
  void finish(Time now);

  const Containers& containers() const { return containers_; }
  std::vector<Action> take_actions() { return actions_.take(); }
  // Whether the core needs the pod's status now.
  bool watching() const;
  // When on_time() must be called at the latest.
  std::optional<Time> next_deadline() const;
  // Jobs can come: the pod is known, a glue is connected and, if the policy wants it, a switch has worked.
  bool usable() const;
  Snapshot snapshot() const {
    return snapshot_of(containers_, queue_, beside_.pulls, references_, health_, answers_);
  }
  // The users who have a job, or who may have left something in shared places. The next agent needs them if
  // this agent is killed.
  std::set<User> users() const { return leftovers_.users(); }
  // For tests: the observer is told of every transition.
  void observe(Containers::Observer observer) { containers_.observe(std::move(observer)); }
  void observe_pulls(Pulls::Observer observer) { beside_.pulls.observe(std::move(observer)); }

 private:
  friend struct Inside;  // tests/explore tells states from each other
  // core.cpp
  void settle(Time now);
  void give_up(std::string why);
  void take(Container& container, const kube::ContainerStatus& status);
  void renew(Time now);
  void fail_unpulled(Time now);

  // placing.cpp: requests and their containers
  bool place(Waiting& waiting, Time now);
  bool join_renewal(Waiting& waiting, const Image& asked, Time now);
  void ready(Container& container, Waiting waiting, std::string_view how, std::chrono::microseconds before,
             EventKind event, Time now);
  void launch(Container& container, const Waiting& waiting, std::string_view how,
              std::chrono::microseconds bound_in, EventKind event, Time now);

  // resizing.cpp: containers get their jobs' sizes
  std::optional<bool> place_sized(Container& container, Waiting& waiting, const std::string& how,
                                  std::chrono::microseconds before, Time now);
  void fail_too_small(const Request& request);
  void check_sizing(EventKind event, Time now);
  void end_sizing(const Resizes::End& end, EventKind event, Time now);

  // glues.cpp: glues that connect and go
  void greet(Container& container, Time now);
  void part(Container& container, EventKind event, Time now);
  void look_at(Container& container, Time now);

  // switching.cpp
  void begin(Container& container, const Image& asked, std::optional<Waiting> waiting, EventKind event,
             Time now);
  void check_again(Container& container, EventKind event, Time now);
  void follow(Container& container, const Switches::Outcome& outcome, EventKind event, Time now);
  void step_done(Container& container, EventKind event, Time now);
  void fail_switch(Container& container, wire::Fault fault, const std::string& message, State next,
                   EventKind event, Time now);

  // jobs.cpp: running and draining
  void signal_job(Container& container, int number, Time now);
  void drain(Container& container, EventKind event, Time now);
  void kill_job(Container& container, EventKind event, Time now);
  void finish_job(Container& container, EventKind event, Time now);
  void check_glue(Container& container, Time now);
  void give_up_glue(Container& container, std::string_view why, Time now);
  void lose_job(Container& container, EventKind event, Time now);

  // inner.cpp: jobs of pilot jobs
  void end_inner(JobId outer, Time now);
  void release_outer(JobId outer, Time now);

  using Stage = Queue::Stage;

  Policy policy_;
  Actions actions_;
  Containers containers_;
  Answers answers_{actions_};
  Health health_{policy_.give_up_after};
  References references_{policy_.nonce_prefix};
  ImageCommands image_commands_{policy_, references_, answers_, actions_};
  Queue queue_{policy_, containers_, answers_};
  Beside beside_{policy_, references_, queue_, answers_, health_, actions_};
  Switches switches_{policy_, references_, beside_.pulls, health_, actions_};
  Births births_{policy_, switches_, beside_.pulls, actions_};
  Resizes resizes_{policy_, containers_, actions_};
  Spares spares_{policy_, references_, containers_};
  Leftovers leftovers_{policy_, containers_, actions_};
  Visits visits_{actions_};
};

}  // namespace glidepod::agent
