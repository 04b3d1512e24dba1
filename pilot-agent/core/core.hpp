#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "lib/base/log.hpp"
#include "lib/kube/failure.hpp"
#include "lib/kube/pod.hpp"
#include "lib/registry/document.hpp"
#include "lib/wire/messages.hpp"
#include "pilot-agent/core/actions.hpp"
#include "pilot-agent/core/binds.hpp"
#include "pilot-agent/core/doubts.hpp"
#include "pilot-agent/core/likely.hpp"
#include "pilot-agent/core/proof.hpp"
#include "pilot-agent/core/pulls.hpp"
#include "pilot-agent/core/sizing.hpp"
#include "pilot-agent/core/snapshot.hpp"
#include "pilot-agent/core/state.hpp"
#include "pilot-agent/core/transitions.hpp"
#include "pilot-agent/core/trouble.hpp"
#include "pilot-agent/core/types.hpp"

namespace glidepod::agent {

// The state of all payload containers and of all who want one. No input or output: events and the time come
// in, actions go out. Each event is taken by the container that it is about, in one function for each state;
// then the queue is looked at, once. pilot-agent/README.md has the states and the rules.
class Core {
 public:
  explicit Core(Policy policy, const std::vector<std::string>& containers = {});

  void on_bind(Request request, Time now);
  void on_client_gone(ClientId client, Time now);
  void on_client_signal(ClientId client, int number, Time now);

  void on_image_known(ClientId client, const registry::ImageCommand& command, Time now);
  void on_image_unknown(ClientId client, wire::Fault fault, const std::string& message, Time now);

  // instance is the id of the container that this glue is in, empty where that cannot be told.
  void on_hello(GlueId glue, const std::string& container, const std::string& instance, Time now);
  void on_goodbye(GlueId glue, Time now);
  void on_glue_lost(GlueId glue, Time now);
  void on_beat(GlueId glue, const wire::Beat& beat, Time now);
  void on_started(GlueId glue, JobId job, int pid, Time now);
  void on_exited(GlueId glue, const wire::Exited& exited, Time now);
  void on_job_ended(GlueId glue, const wire::JobEnded& ended, Time now);
  void on_launch_failed(GlueId glue, const wire::LaunchFailed& failed, Time now);

  // The pilot job that runs as this user in the container of this id. Only its processes may ask for
  // containers from there.
  struct Pilot {
    JobId id = 0;
    Request request;
  };
  std::optional<Pilot> pilot_in(std::string_view instance, uid_t uid) const;
  std::optional<Pilot> pilot_of(JobId job) const;

  void on_enter(const Visit& visit);
  // Whose session it is; 0 if they are gone.
  ClientId on_session_started(GlueId glue, JobId job, SessionId session);
  void on_session_ended(GlueId glue, const wire::SessionEnded& ended);
  void on_session_failed(GlueId glue, const wire::SessionFailed& failed);

  // The pod as it was when the agent started. Until then no image is switched. An earlier agent of this pod
  // may have ended in the middle of a switch; a young pod's status may still be empty.
  enum class Earlier : std::uint8_t { none, some };
  // Before that: whose jobs earlier agents have not seen the end of, by their users().
  void on_earlier_users(const std::set<User>& users);
  void on_first_pod(const kube::Pod& pod, Earlier agents, Time now);
  void on_pod(const kube::Pod& pod, Time now);
  void on_patched(std::uint64_t attempt, const kube::Pod& pod, Time now);
  void on_patched(std::uint64_t attempt, const kube::Failure& failure, Time now);
  void on_resized(std::uint64_t attempt, const kube::Pod& pod, Time now);
  void on_resized(std::uint64_t attempt, const kube::Failure& failure, Time now);
  void on_wanted(Time now);
  void on_wanted(const kube::Failure& failure, Time now);

  void on_time(Time now);
  // The pilot is about to end: whose job has not begun is refused, whoever waits now or asks later. Jobs that
  // run go on.
  void drain(Time now);
  // The same, where no job is left. A container that cannot start what it was told, or has yet to start what
  // the pod was made with, is told the pilot's own image: its glue must come before it can be finished, and
  // until it is the pod does not end.
  void call_home(Time now);
  // The containers whose glue is not connected, or is about to be stopped for another image.
  std::vector<std::string> missing() const;
  // After finish(): a glue that was sent home has yet to go; and the containers whose glue has not gone, or
  // was stopped from outside meanwhile, so that the kubelet starts it again.
  bool ending() const;
  std::vector<std::string> unended() const;
  // The pilot ends: jobs are killed, glues sent home, requests refused.
  void finish(Time now);

  std::vector<Action> take_actions() { return std::exchange(actions_, {}); }
  // Whether the pod's status is of interest now.
  bool watching() const;
  // When on_time() must be called at the latest.
  std::optional<Time> next_deadline() const;
  // Jobs can come: the pod is known, a glue is connected and, where policy wants it, a switch has worked.
  bool usable() const;
  bool busy() const;  // a job is under way
  // A container that the pod was made with a job's image for has yet to come.
  bool expects_births() const;
  std::size_t containers() const { return containers_.size(); }
  // The containers of the pod that are neither the pilot's own nor its payload's, as a service mesh adds
  // them.
  std::vector<std::string> others(const kube::Pod& pod) const;
  std::optional<State> state_of(std::string_view container) const;
  Snapshot snapshot() const;
  // Who has a job, or may have left something in shared places. For the next agent, should this one be
  // killed.
  std::set<User> users() const;
  // Is told of every transition, for tests.
  using Observer = std::function<void(const Container&, const Transition&)>;
  void observe(Observer observer) { observer_ = std::move(observer); }
  void observe_pulls(Pulls::Observer observer) { pulls_.observe(std::move(observer)); }

 private:
  // A job whose glue vanished: the pod's status will tell why.
  struct LostJob {
    std::string container, instance;
    std::int64_t restarts = 0;  // as last told
    Request request;
    EndFacts end;
  };
  struct Known {
    std::string repository, digest;
  };

  // core.cpp
  void settle(Time now);
  void give_up(std::string why);
  void take(Container& container, const kube::ContainerStatus& status);
  void become(Container& container, AnyState state, EventKind event);
  void unsettle(Container& container, Time now);
  Container* find(std::string_view name);
  Container* find_glue(GlueId glue);
  Container* find_job(GlueId glue, JobId job);
  Container* find_client(ClientId client);
  void refuse_waiting(const std::function<bool(const Request&)>& which, const std::string& why);
  void fail(const Request& request, wire::Fault fault, std::string message);
  void count_failure(const std::string& reason);
  void act(Action action) { actions_.push_back(std::move(action)); }

  // queue.cpp: requests and their containers
  void dispatch(Time now);
  bool place(Waiting& waiting, Time now);
  Container* reserved_for(const Request& request);
  bool has_reserved_for(const Request& request) const;
  void free_reservations(const Request& request);
  std::string goal_of(const Request& request) const;
  Container* warm_for(const Request& request);
  Container* coldest(State state);
  Container* smallest_idle();
  Container* for_probe();
  void ready(Container& container, Waiting waiting, std::string_view how, std::chrono::microseconds before,
             EventKind event, Time now);
  void launch(Container& container, const Waiting& waiting, std::string_view how,
              std::chrono::microseconds bound_in, EventKind event, Time now);

  // resizing.cpp: containers get their jobs' sizes
  enum class Fit : std::uint8_t {
    fits,       // or nobody asks
    resize,     // first
    wait,       // until other sizes are settled
    too_small,  // for good
  };
  Fit fit_of(const Container& container, const Request& request);
  bool too_small(const Container& container, const Request& request) const;
  std::optional<bool> place_sized(Container& container, Waiting& waiting, const std::string& how,
                                  std::chrono::microseconds before, Time now);
  void fail_too_small(const Request& request);
  std::vector<Sizeable> sizeables() const;
  void begin_sizing(Container& container, Time now);
  bool take_used(const Container& container, const wire::Beat& beat, Time now);
  void ask_sizes(Time now);
  void ask_round(std::vector<kube::SizeChange> changes, EventKind event, Time now);
  bool in_force(const kube::SizeChange& change) const;
  void see_sizes(const kube::Pod& pod);
  void check_sizing(EventKind event, Time now);
  void end_sizing(std::string_view trouble, EventKind event, Time now);
  void leave_sizing(Time now);
  void no_resizes(const std::string& why);

  // spares.cpp: containers that are made ready while nobody waits
  void renew(Time now);
  bool renew_one(Time now);
  bool join_renewal(Waiting& waiting, Time now);
  Container* renewed_for(const Request& request);
  Container* least_wanted_idle();
  void queue_told(const kube::Pod& pod);
  Free as_free(const Container& container) const;

  // beside.cpp: images that are pulled beside the pod
  bool may_switch(const std::string& image, Time now);
  void fail_unpulled(Time now);
  std::string why_queued(const Request& request) const;
  void ask_for_pulls(Time now);

  // images.cpp: what an image runs by itself
  enum class Command : std::uint8_t { known, asked, failed };
  Command ask(Waiting& waiting, Time now);
  bool take_command(Waiting& waiting, const registry::ImageCommand& command);
  const registry::ImageCommand* cached(std::string_view image) const;
  Waiting* find_waiting(ClientId client);
  void drop_waiting(ClientId client, EventKind event);
  std::string exact_name(const std::string& image) const;

  // glues.cpp: who comes and goes
  std::string stranger(const Container& container, const std::string& instance) const;
  void greet(Container& container, Time now);
  void part(Container& container, EventKind event, Time now);
  void look_at(Container& container, Time now);
  void await_digest(Container& container, Time now);
  void learn(const std::string& image, const std::string& admitted_image,
             const kube::ContainerStatus& status);
  void look_at_earlier(Container& container);
  bool owes_first() const;
  void check_first(Time now);

  // born.cpp: containers that the pod was made with a job's image for
  void expect_birth(Container& container, Time now);
  void born(Container& container, Time now);
  bool miscarried(Container& container, Time now);
  Container* for_first();

  // switching.cpp
  void begin(Container& container, std::string target, std::optional<Waiting> waiting, EventKind event,
             Time now);
  void check_again(Container& container, EventKind event, Time now);
  void next_step(Container& container, Switching& step, Time now);
  void step_done(Container& container, EventKind event, Time now);
  void fail_switch(Container& container, wire::Fault fault, const std::string& message, State next,
                   EventKind event, Time now);
  void fail_in_doubt(const Request& request, const std::string& image, const std::string& message,
                     bool counts, Time now);
  void patched(Container& container, const kube::Pod& pod, Time now);
  Container* switching(std::uint64_t attempt);
  void not_patched(Container& container, const kube::Failure& failure, Time now);
  void judge(Container& container, EventKind event, Time now);
  void check_switch(Container& container, Time now);
  bool shows_instance(const Container& container, const kube::ContainerStatus& status, Time now) const;
  bool shows_wanted(const Container& container, const kube::ContainerStatus& status) const;

  // references.cpp: what is patched
  std::optional<std::string> reference_for(const Container& container, const std::string& image);
  std::string home_reference();
  bool may_be_home(const std::string& image) const;
  std::string nonce();
  void look_at_names(const Container& container, const std::string& reference, const std::string& admitted);
  void look_at_home(const kube::Pod& pod);

  // jobs.cpp: running and draining
  static Verdict verdict_on(const Job& job, Time now);
  void conclude(const Job& job, Time now);
  void tell_end(const Request& request, const EndFacts& facts, const wire::Ran& ran, Time now);
  void signal_job(Container& container, int number, Time now);
  void drain(Container& container, EventKind event, Time now);
  void kill_job(Container& container, EventKind event, Time now);
  void finish_job(Container& container, EventKind event, Time now);
  void check_job(Container& container, Time now);
  // inner.cpp: jobs of pilot jobs
  Result<void> check_inner(const Request& request) const;
  bool has_inner(JobId outer) const;
  void end_inner(JobId outer, Time now);
  void release_outer(JobId outer, Time now);
  void give_up_glue(Container& container, std::string_view why, Time now);
  // lost.cpp: jobs whose glue vanished
  void lose_job(Container& container, EventKind event, Time now);
  void check_lost(const kube::Pod& pod, Time now);
  void check_lost(Time now);

  // left.cpp: what lost jobs have left in shared places
  void leaves(const Container& container, const Request& request);
  void forget_left(uid_t uid);
  void has_ended(const Container& container);
  bool has_inherited() const;
  bool is_clearing(uid_t uid) const;
  void clear_left(Time now);

  // sessions.cpp
  void end_visits(const Job& job);
  void leave_session(ClientId client);
  std::optional<Session> take_session(GlueId glue, JobId job, SessionId session);

  template <typename... Args>
  void note(fmt::format_string<Args...> format, Args&&... args) {
    act(Note{Note::Level::info, fmt::format(format, std::forward<Args>(args)...)});
  }
  template <typename... Args>
  void warn(fmt::format_string<Args...> format, Args&&... args) {
    act(Note{Note::Level::warning, fmt::format(format, std::forward<Args>(args)...)});
  }

  Policy policy_;
  Pulls pulls_{policy_};
  Doubts doubts_;
  bool names_given_ = false;
  bool pod_known_ = false;
  bool finishing_ = false;
  bool proven_ = false;  // a switch has worked
  bool given_up_ = false;
  bool draining_ = false;
  bool tags_dropped_ = false;        // by admission, beside a digest
  std::optional<Time> node_worked_;  // when it last started a container as the pod said
  int failures_ = 0;                 // of the infrastructure, since a job was started
  std::string last_failure_;
  std::string shortage_;  // of the last job that was put on hold for it
  Binds binds_;
  Lately lately_;
  std::vector<kube::LikelyImage> queued_;  // what the queues want, as far as this pilot has been told
  std::map<std::string, Time, std::less<>> not_renewed_;  // by image: it failed, and until when it stays so
  Time first_again_{};                                    // when a test switch may be tried
  std::string home_container_;                            // the pilot's own
  Credentials credentials_ = Credentials::none;           // of the pod, for registries
  Home home_;
  std::int64_t version_ = 0;              // of the newest pod seen
  std::optional<kube::Size> room_;        // of all payload containers together
  bool no_resizes_ = false;               // not served, or not allowed
  std::optional<Sizing> sizing_;          // one at a time
  std::optional<Time> sizes_settled_at_;  // what was asked may come about until then
  bool sizes_can_show_ = false;           // or before, by the status
  std::optional<kube::Pod::PendingResize> pending_resize_;
  std::int64_t observed_generation_ = 0;
  std::string size_trouble_;  // the last one, which is said once
  std::deque<Container> containers_;
  std::deque<Waiting> queue_;
  std::vector<LostJob> lost_jobs_;
  std::vector<Left> left_;
  // A glue ends its cleaning by itself within that (glue/cleanup.hpp).
  static constexpr std::chrono::seconds k_cleared_within{30};
  std::optional<Time> earlier_cleared_at_;           // no glue of before cleans any more
  std::set<std::string, std::less<>> like_home_;     // images that showed the pilot's own content
  std::set<std::string, std::less<>> home_names_;    // images proven to be it, where no digest can say so
  std::map<std::string, Known, std::less<>> known_;  // by image as jobs ask for it
  std::deque<std::pair<std::string, registry::ImageCommand>> commands_;  // by digest, the oldest first
  std::vector<Action> actions_;
  Observer observer_;
  std::uint64_t last_attempt_ = 0;
  std::uint64_t last_nonce_ = 0;
  std::uint64_t last_beat_ = 0;
  JobId last_job_ = 0;
  SessionId last_session_ = 0;
};

}  // namespace glidepod::agent
