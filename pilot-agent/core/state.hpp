#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lib/kube/pod.hpp"
#include "pilot-agent/core/ending.hpp"
#include "pilot-agent/core/image.hpp"
#include "pilot-agent/core/trouble.hpp"
#include "pilot-agent/core/types.hpp"

namespace glidepod::agent {

// What a container is doing. Each state holds its own data only. What is known of the container in every
// state stands in Container. To send a container home is to switch it to the pilot's own image.

// Its glue is not connected; the kubelet will start the container again.
struct Absent {
  std::optional<Time> until = {};  // then the container is sent home
  bool unborn = false;             // the pod was made with a job's image in it, and its glue never came
};

// It can take a job.
struct Idle {};

// It is not known what runs in it or will run, and the switch home failed. The next request tries again.
struct Broken {};

// Its image is being changed, or the core is finding out what runs in it.
struct Switching {
  enum class Leg : std::uint8_t {
    home,    // to the pilot's own image, which is surely on the node and which the status always proves
    target,  // to the image that was asked for
    check,   // without a patch: the status must show that what started by itself is what the pod says
    calm,    // waits with the pilot's own image until the kubelet has acted on all patches
    size,    // keeps its image while it gets its job's size
  };
  enum class Proof : std::uint8_t {
    goodbye,  // glue said goodbye after the patch, so the next Hello is of the new image
    status,   // the pod's status must show what the connected glue's container runs
  };
  Image asked = Image::home();
  std::optional<Waiting> waiting;
  bool spare = false;       // no request waits: jobs are likely to ask for the image
  bool announced = false;   // nor does this one, but a certain job will
  bool same_image = false;  // the container had this image, for another owner
  Time deadline;
  // The present step.
  Leg leg = Leg::home;
  Proof proof = Proof::status;
  std::string reference;      // the name in the patch
  std::uint64_t attempt = 0;  // the number of the patch; 0: none
  bool answered = false;      // the API has taken the patch
  Time answered_at{};         // when it did
  GlueId connected = 0;       // the glue that was connected when the patch was sent, whatever it ran
  std::string last_instance;  // the id of the newest container whose glue had said Hello by then
  GlueId before = 0;  // the glue that was connected when the patch was sent, if its content was proven
  std::optional<Time> pull_deadline, trouble_since;
  std::optional<Time> unclear_until;
  std::optional<Time> mute_until;  // by the status the image runs; its glue has to connect by then
  std::optional<Image> accused;    // the switch home tells whether this image or the pilot is at fault
  bool goodbye_needed = false;     // the status cannot prove the image that was asked for
  bool by_id = false;              // the image's plain name would have to wait
  bool left_id = false;            // a name by id was not taken; the status may still tell of that
  bool alike = false;  // the status shows the pilot's own content, and `asked` may be another name of it
  // For leg size, when the container has the image that was asked for: how it got it. Empty: the image comes
  // next.
  std::string how = {};
  std::chrono::microseconds before_bound{};
  Trouble trouble;  // the last trouble with pulling or starting

  // The image that the present step leads to: the one that was asked for, or home on the way to it.
  Image leads_to() const { return leg == Leg::home ? Image::home() : asked; }
};

// Ready, and kept for the slot whose `apptainer test` it passed.
struct Reserved {
  Request request;
  std::string how;
  std::chrono::microseconds bound_in{};
  Time until;
};

// Ready, except that the registry has yet to say what its image runs by itself.
struct Asking {
  Waiting waiting;
  std::string how;
  std::chrono::microseconds before{};
};

// The beats, by which the agent sees that glue still answers. An answer also says what the job uses.
struct Pulse {
  Time next{};
  std::uint64_t number = 0;
  std::optional<Time> until = {};  // when an answer is due
  wire::Beat answer = {};          // the last answer
};

// What a job may have left in shared places. It can be removed once the job's container has ended.
struct Left {
  User user;
  std::string container;  // the job's container; empty: an earlier agent's job, in any container
  bool ended = false;
};

struct Job {
  Request request;  // its client becomes 0 when the client is gone
  JobId id = 0;
  std::string container = {};  // the name of its container
  std::string how = {};        // how it got the container, as the log has it
  std::chrono::microseconds bound_in{};
  EndFacts end = {};
  Pulse pulse = {};
  std::string digest = {};  // of the image that ran; empty: the status had not told it by the end

  bool goodbye() const { return end.goodbye_at.has_value(); }  // its container is being stopped from outside
};

// A job runs.
struct Running {
  Job job;
};

// A job is being killed, or glue removes what it left, or the core is finding out why it ended.
struct Draining {
  Job job;
  bool ended = false;  // nothing of the job is left; its verdict is open, or a pilot job's own jobs still run
  Time until;
  bool meant = false;  // the verdict is known; only the pilot job's own jobs still run
};

// Its glue removes what a lost job has left, and answers as for a job.
struct Clearing {
  Left left;
  JobId id = 0;  // the number that glue answers with
  Pulse pulse = {};
  Time until{};
};

using AnyState = std::variant<Absent, Idle, Switching, Reserved, Asking, Running, Draining, Clearing, Broken>;

// In the order of AnyState.
enum class State : std::uint8_t {
  absent,
  idle,
  switching,
  reserved,
  asking,
  running,
  draining,
  clearing,
  broken,
};
constexpr std::size_t k_states = 9;
static_assert(std::variant_size_v<AnyState> == k_states);
std::string_view name_of(State state);
std::string_view name_of(Switching::Leg leg);
std::string_view name_of(Switching::Proof proof);

struct Container {
  std::string name;
  // The kubelet starts it again however it has ended, and ends it after the pilot.
  bool sidecar = false;
  std::int64_t memory_limit_kib = 0;  // the limit in force, else the one in the pod's spec; 0: none
  kube::Size size = {};               // in the pod's spec, as last told
  // asked_memory: the lowest memory limit that it may still get from resizes that are not known to be in
  // force. made_memory: the limit that the pod was made with. Both in bytes; 0: none, or not known.
  std::int64_t asked_memory = 0, made_memory = 0;
  // The connected glue.
  GlueId glue = 0;
  std::string instance;       // the id of its container; empty: not known
  std::string last_instance;  // the id of the last container whose glue was connected
  Time since{};               // when it said Hello
  // The image that is proven to run. It is certain in every state but absent, switching and broken.
  Image proven = Image::home();
  // What the kubelet was told last.
  struct Told {
    Image asked = Image::home();  // as jobs ask for it
    std::string reference;        // the name in the patch
    std::string admitted;         // the name in the pod: admission may have led to a mirror
  } told;
  // How the next job comes by it, if it wants this image: as said when the image was brought for a job that
  // was announced, until one has run.
  std::string_view came_by = "warm";
  std::string owner;     // the owner of the last job since it started; empty: it had no job
  bool spoiled = false;  // it must be made anew before its next use
  bool unclean = false;  // spoiled, and its glue is not asked to clear anything any more
  bool stopped = false;  // its glue was told to end, and no other glue has connected since
  bool empty = false;    // by its glue the image has no file
  // An earlier agent may have had jobs in it, and nobody knows their owners any more. It is patched before
  // its next use.
  bool inherited = false;
  std::string shown;           // its imageID, once the status has told it
  std::string shown_before;    // the imageID of the container before it, if the two should differ
  bool shown_running = false;  // the status has shown this very container running
  // The container is unsettled until then: the kubelet may still act on an earlier patch.
  std::optional<Time> calm_at;
  std::optional<kube::ContainerStatus> status;  // the last one told; old while the pod is not watched
  std::optional<Time> learning_until;           // until then its imageID is awaited
  // The names without a digest that it has run. The kubelet may wait before it starts one of them again.
  std::set<std::string> ran;
  std::map<std::string, unsigned, std::less<>> named_by_id;  // how often it got a name by this id
  // The container before this one, if it was told to end before the status had told of it.
  struct Earlier {
    std::string instance;
    Image proven;
    std::string admitted;
  };
  std::optional<Earlier> unlearnt;
  Time last_used{};
  // The claim of the last job is kept for its owner's next one: until then, or until its slot asks for
  // something.
  struct Kept {
    uid_t uid = 0;  // the slot's user
    Time until;
  };
  std::optional<Kept> kept;
  AnyState state;

  State kind() const { return static_cast<State>(state.index()); }
  bool settled() const { return !calm_at; }
  // Notes that the kubelet may still act, until then, on something that it was told before.
  void unsettle(Time until) { calm_at = until; }
  bool is_kept(Time now) const { return kept && now < kept->until; }
  // Notes that the container is new: it has had no job yet.
  void be_fresh() {
    spoiled = unclean = inherited = false;
    owner.clear();
    kept.reset();
  }
  // The job that runs or ends in the container; null: none.
  Job* job();
  const Job* job() const { return const_cast<Container*>(this)->job(); }
  // The beats of its glue, which has a job or clears; null: it does neither.
  Pulse* pulse();
  const Pulse* pulse() const { return const_cast<Container*>(this)->pulse(); }
  bool busy() const { return pulse() != nullptr; }
  // The request that waits for the container's image, or for what that image runs by itself; null: none.
  const Request* waiting() const;
};

}  // namespace glidepod::agent
