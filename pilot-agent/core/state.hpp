#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lib/kube/pod.hpp"
#include "pilot-agent/core/ending.hpp"
#include "pilot-agent/core/trouble.hpp"
#include "pilot-agent/core/types.hpp"

namespace glidepod::agent {

// What a container is doing. Each state holds its own data and no other's; what is known of the container in
// every state stands in Container.

// Its glue is not connected; the kubelet will start it again.
struct Absent {
  std::optional<Time> until = {};  // then it is sent home
  bool unborn = false;             // the pod was made with a job's image for it, and it never came
};

// Can take a job.
struct Idle {};

// What runs in it, or will, is not known, and the way home failed: the next request tries again.
struct Broken {};

// Its image is being changed, or it is being found out what runs in it.
struct Switching {
  enum class Leg : std::uint8_t {
    home,    // to the pilot's own image, which is on the node for certain and which the status always proves
    target,  // to the image that is wanted
    check,   // nothing is patched: is what started by itself what the pod says?
    calm,    // at home until the kubelet has acted on all that it was told
    size,    // its image stays as it is while it is given its job's size
  };
  enum class Proof : std::uint8_t {
    goodbye,  // glue said goodbye after the patch, so the next Hello is of the new image
    status,   // the pod's status must show what the connected glue's container runs
  };
  std::string target;  // empty: the pilot's own image is the goal
  std::optional<Waiting> waiting;
  bool spare = false;       // nobody waits: the image is likely to be asked for
  bool same_image = false;  // the container had this image, for another owner
  Time deadline;
  // The present step.
  Leg leg = Leg::home;
  Proof proof = Proof::status;
  std::string reference;      // as patched
  std::uint64_t attempt = 0;  // of the patch; 0: none
  bool answered = false;      // the API has taken the patch
  Time answered_at{};         // if so
  GlueId connected = 0;       // the glue that was connected when the patch was sent, whatever it ran
  std::string last_instance;  // the newest container of which a glue had said Hello by then
  GlueId before = 0;          // the glue of proven content, connected when the patch was sent
  std::optional<Time> pull_deadline, trouble_since;
  std::optional<Time> unclear_until;
  std::optional<Time> mute_until;  // the wanted image runs, by the status, and its glue has yet to be heard
  std::string accused;  // by this way home it is found out whether that image or the pilot is at fault
  bool goodbye_needed = false;  // the status cannot prove the target
  bool alike = false;           // it shows the pilot's own content, which the target may be another name of
  // Of leg size: what the container came by its image by, if it has the target's; empty: that comes next.
  std::string how = {};
  std::chrono::microseconds before_bound{};
  Trouble trouble;  // last heard of pulling or starting
};

// Ready for whoever had it tested.
struct Reserved {
  Request request;
  std::string how;
  std::chrono::microseconds bound_in{};
  Time until;
};

// Ready, but for what its image runs by itself.
struct Asking {
  Waiting waiting;
  std::string how;
  std::chrono::microseconds before{};
};

struct Session {
  SessionId id = 0;
  ClientId client = 0;  // 0: gone, and glue is told
  wire::Enter::What what = wire::Enter::What::session;
};

// The questions whether glue still answers. Its answer says what the job uses.
struct Pulse {
  Time next{};
  std::uint64_t number = 0;
  std::optional<Time> until;  // an answer is due
  wire::Beat answer;          // the last one
};

// What a job may have left in shared places, to be removed once its container has ended.
struct Left {
  User user;
  std::string container;  // empty: an earlier agent's job, in any of them
  bool ended = false;
};

struct Job {
  Request request;  // its client is 0 once that is gone
  JobId id = 0;
  std::string container = {};  // its name
  std::string how = {};        // it came by that, as the log has it
  std::chrono::microseconds bound_in{};
  EndFacts end = {};
  std::vector<Session> sessions = {};
  Pulse pulse = {};
  std::string digest = {};          // of what ran, as far as the status had told when it ended
  std::optional<Left> clears = {};  // it is none: glue removes what another has left

  bool goodbye() const { return end.goodbye_at.has_value(); }  // its container is being stopped from outside
};

// A job is under way.
struct Running {
  Job job;
};

// A job is being killed or cleaned up after, or it is being found out why it ended.
struct Draining {
  Job job;
  bool ended = false;  // glue has nothing of it left; only its meaning is open, or its own jobs' ends
  Time until;
  bool meant = false;  // only those are
};

using AnyState = std::variant<Absent, Idle, Switching, Reserved, Asking, Running, Draining, Broken>;

// In the order of AnyState.
enum class State : std::uint8_t { absent, idle, switching, reserved, asking, running, draining, broken };
constexpr std::size_t k_states = 8;
static_assert(std::variant_size_v<AnyState> == k_states);
std::string_view name_of(State state);
std::string_view name_of(Switching::Leg leg);
std::string_view name_of(Switching::Proof proof);

struct Container {
  std::string name;
  std::int64_t memory_limit_kib = 0;  // in force, or by the pod's spec; 0: none
  kube::Size size = {};               // by the pod's spec, as last told
  // The least limit of memory that it may get, by what was asked and is not known to be in force; and that it
  // had when it was made. In bytes; 0: none, or not known.
  std::int64_t asked_memory = 0, made_memory = 0;
  // The connected glue.
  GlueId glue = 0;
  std::string instance;       // the id of its container; empty: it cannot be told
  std::string last_instance;  // the same, also when it has gone
  Time since{};               // its Hello
  // What it runs, which is certain in every state but absent, switching and broken.
  std::string image;  // as jobs ask for it; empty: none of theirs
  // What the kubelet was told last: the reference in the patch, its image as jobs ask for it, and what
  // admission made of it, which may lead to a mirror.
  std::string told, told_image, admitted;
  std::string owner;     // of the last job since it started; empty: it had none
  bool spoiled = false;  // must be made fresh before its next use
  bool unclean = false;  // and its glue clears nothing any more
  bool stopped = false;  // its glue was told to end, and no other has come since
  // An earlier agent may have had jobs in it, whose owners nobody knows any more: it is patched before any
  // use.
  bool inherited = false;
  std::string shown;           // its imageID, once the status has told it
  std::string earlier;         // that of the container before it, where the two should differ
  bool shown_running = false;  // the status has told of this very container
  // Unsettled until then: the kubelet may yet act on an earlier patch.
  std::optional<Time> calm_at;
  std::optional<kube::ContainerStatus> status;  // the last one told; old unless the pod is watched
  std::optional<Time> learning_until;           // its imageID is awaited
  // The container before this one, if it was to be gone before the status had told of it.
  struct Earlier {
    std::string instance, image, admitted;
  };
  std::optional<Earlier> unlearnt;
  Time last_used{};
  AnyState state;

  State kind() const { return static_cast<State>(state.index()); }
  bool settled() const { return !calm_at; }
  // Nobody's job has been in it.
  void be_fresh() {
    spoiled = unclean = inherited = false;
    owner.clear();
  }
  // The job that the container has, or whose end it is clearing up.
  Job* job();
  // The request that waits for the container, while its image, or what that image runs, is not ready; null:
  // none.
  const Request* waiting() const;
  const Job* job() const { return const_cast<Container*>(this)->job(); }
};

}  // namespace glidepod::agent
