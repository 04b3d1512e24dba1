#pragma once

#include <fmt/format.h>

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pilot-agent/core/core.hpp"

namespace glidepod::explore {

using agent::ClientId;
using agent::GlueId;
using agent::JobId;
using agent::Time;
using PodVersion = std::shared_ptr<const kube::Pod>;

constexpr int k_boxes = 2;
constexpr int k_jobs = 2;      // of a schedule
constexpr int k_all_jobs = 4;  // with those that are asked for when all is over
constexpr int k_contents = 7;
// home is the pilot's own; what gone names is nowhere; bad cannot start.
enum Content : int { home, alpha, beta, gamma, delta, gone, bad };

// What a job asks for, and how.
struct Plan {
  std::string_view image, owner;
  uid_t uid = 0;
  bool test = false;  // its starter calls `apptainer test` first
};
struct Variant {
  std::string_view name, what;
  std::array<Plan, k_jobs> jobs;
};
const std::vector<Variant>& variants();

// What can happen next. Those of the first group happen before any time passes, in whatever order; those of
// the second may be a while; the third are faults, and cost one each.
enum class Kind : std::uint8_t {
  first_pod,  // the agent has its pod
  timer,      // the agent's timer
  message,    // what a glue said reaches the agent: a = link
  apply,      // the API takes a patch: a = request
  answer,     // its answer reaches the agent
  hear,       // the kubelet hears of the pod's newest spec
  task,       // the kubelet's pass over the pod goes on
  look,       // the kubelet sees that a container has ended: a = box
  again,      // the kubelet looks at the pod again
  status,     // a status reaches the API, and older ones of the container are never seen: a = box, b = which
  get,        // the agent asks for the pod as it is
  stream,     // the watch tells the agent of the next version
  exec,       // the starter goes on after its test: a = job
  cleaned,    // nothing of the job is left: a = box
  stopped,    // the job ends by the SIGTERM that stops its container: a = box
  told_late,  // glue gets the SIGTERM that the job got before: a = box
  // ---- lazy
  ask,   // a starter asks: a = job
  ends,  // a job ends by itself: a = box
  time,  // nothing else happens until the next deadline
  // ---- faults
  kill_glue,        // SIGKILL: a = box
  stop,             // somebody stops the container: a = box
  strike,           // somebody signals all its processes, glue last: a = box
  kill_for_memory,  // the kernel kills the job: a = box
  kill_all_for_memory,
  late_status,   // the statuses of a container take up to 20 s: a = box
  late_stream,   // the watch is silent for up to 35 s
  late_request,  // a request to the API, or its answer, takes up to 15 s: a = request
  late_hearing,  // the kubelet hears of the pod up to 10 s late
  late_task,     // what the kubelet does takes up to 30 s
  refused,       // the API does not take the patch: a = request
  lost_done,     // the agent has no answer; the patch is taken: a = request
  lost_undone,   // nor is it taken
  late_effect,   // it is taken within 45 s
  cut,           // the watch is cut, and begins again with the pod as it is
  leave,         // a client is gone: a = job
  signal,        // a client passes SIGTERM: a = job
  agent_dies,    // and starts again
  pull_fails,    // the kubelet's next pull
  link_breaks,   // glue connects again: a = box
};
constexpr auto k_first_lazy = Kind::ask, k_first_fault = Kind::kill_glue;
std::string_view name_of(Kind kind);

struct Choice {
  Kind kind{};
  std::uint8_t a = 0, b = 0;
  bool late = false;  // may be a while
  bool is_fault() const { return kind >= k_first_fault; }
  bool is_lazy() const { return late || (kind >= k_first_lazy && kind < k_first_fault); }
  friend bool operator==(const Choice&, const Choice&) = default;
};

// One pod on its node, the real core in it, and two starters. No time passes while something is about to
// happen; then it jumps to the next deadline. So what counts is which comes first.
class Model {
 public:
  Model(const Variant& variant, int faults, bool tell);

  // What can happen now, in an order that depends on the state alone.
  const std::vector<Choice>& choices();
  void apply(const Choice& choice);
  // Two more jobs in the pod as it is now, without faults.
  void begin_finals();
  // When nothing can happen any more.
  void check_rest();

  const std::string& verdict() const { return verdict_; }
  int faults_left() const { return faults_; }

 private:
  friend class Digest;
  enum class Cause : std::uint8_t { none, itself, signal, memory, stop, lost, killed };
  struct Client {
    ClientId id = 0;  // of the request; 0: none yet
    enum class Stage : std::uint8_t { unasked, testing, tested, waiting, over } stage = Stage::unasked;
    agent::Request request;
    int launches = 0;
    bool ran = false, told = false, after_goodbye = false, astray = false, signalled = false, held = false;
    bool well = false;  // its job's end was told as it was
    std::optional<ExitStatus> end;
    Cause cause = Cause::none;
    bool active() const { return stage == Stage::testing || stage == Stage::waiting; }
  };
  struct Message {
    enum class What : std::uint8_t { hello, goodbye, exited, job_ended, launch_failed, hang_up } what{};
    JobId job = 0;
    ExitStatus status = {};
    bool memory = false;
    int about = -1;
    bool last = false;  // its link ends with it
  };
  struct Link {
    GlueId id = 0;
    int box = 0;
    std::uint64_t instance = 0;
    std::deque<Message> said = {};
  };
  struct GlueJob {
    JobId id = 0;
    int about = -1;  // -1: glue clears up
    ClientId client = 0;
    uid_t uid = 0;
    std::optional<ExitStatus> status = {};
  };
  struct Glue {
    bool alive = false, said_goodbye = false, leaving = false, stopping = false, told_late = false;
    GlueId link = 0;
    std::optional<GlueJob> job = {};
  };
  struct Instance {
    std::uint64_t id = 0;
    std::string image;
    int content = 0;
    std::int64_t restarts = 0;
    bool running = true;
    kube::Termination end = {};
    Time finished{};
    // The agent has been shown it; and had, when it had it patched; and it was there when that happened.
    bool shown = false, known = false, leaving = false;
  };
  struct Pause {
    Milliseconds length{0};
    Time since{};
  };
  struct Box {
    std::string name, wanted;
    std::optional<Instance> now;
    std::optional<kube::Termination> before;
    std::string reason, message;
    std::map<std::string, Pause> crashes = {};
    Pause pull = {};
    std::string pull_image = {};
    Glue glue = {};
    bool unseen_end = false;
    std::deque<kube::ContainerStatus> statuses = {};  // on their way
    std::optional<Time> late_status = {};
    bool behind = false, behind_known = false;
    std::map<ClientId, Time> astray = {};
    std::uint64_t patching = 0, applied = 0;  // the newest patch without an answer; the newest that was taken
    std::uint64_t owner_instance = 0;         // who had it since it started
    std::string owner;
    bool runs() const { return now && now->running; }
  };
  struct Request {
    std::uint64_t attempt = 0, order = 0;
    int box = 0;
    std::string image;
    PodVersion taken = {};  // null: not yet
    bool unanswered = false;
    std::optional<Time> late = {};
  };
  struct Task {
    int box = 0;
    bool kill = false;
    std::string image = {};
  };

  template <typename... Args>
  void say(fmt::format_string<Args...> format, Args&&... args) {
    if (tell_) line(fmt::format(format, std::forward<Args>(args)...));
  }
  void line(const std::string& text) const;
  void broken(std::string_view property, const std::string& about);
  bool is_late(const std::optional<Time>& late) const { return late && now_ < *late; }
  Client* client(ClientId id);

  // node.cpp: containers, their glues, the kubelet
  int content_of(std::string_view reference) const;
  kube::ContainerStatus status_of(const Box& box) const;
  void show(Box& box) { box.statuses.push_back(status_of(box)); }
  void hear();
  void sync();
  void work();
  bool kill(int index);
  bool start(int index, const std::string& image);
  void create(int index, const std::string& image, int content);
  bool in_backoff(Box& box, const std::string& image);
  void wait_for(Box& box, std::string reason, std::string message);
  void look(int index);
  void connect(int index);
  void take_launch(int index, JobId job, ClientId id);
  void take_clear(int index, JobId job, uid_t uid);
  void take_signal(int index, JobId job, int number);
  void job_ends(int index, ExitStatus status, Cause cause);
  void cleaned(int index);
  void terminate(int index);
  void killed(int index, kube::Termination how);
  void glue_says(int index, const Message& message);
  void agent_gone(int index);
  int box_of(GlueId glue) const;

  // agent.cpp: what pilot-agent/agent.cpp and lib/kube make of the core's actions and events; and what must
  // hold
  void start_agent();
  void agent_dies();
  template <typename F>
  void tell(F what);
  void pump();
  void run(const agent::Patch& action);
  void run(const agent::Launch& action);
  void run(const agent::Clear& action);
  void run(const agent::SignalJob& action);
  void run(const agent::Answer& action);
  void run(const agent::Fail& action);
  void run(const agent::Hold& action);
  void run(const agent::DropGlue& action);
  void run(const agent::KillGlue& action);
  void run(const agent::GiveUp& action);
  void run(const agent::Note& action);
  void run(const agent::JobOver&) {}
  void run(const agent::Vacate&) {}
  template <typename T>
  void run(const T&);
  void publish(kube::Pod pod, bool news);
  void take_status(int box, std::size_t which);
  void apply_patch(Request& request);
  void answer(std::size_t index);
  void fail_patch(std::size_t index, kube::Failure failure);
  void adjust_watch(std::int64_t from);
  void saw(const kube::Pod& pod);
  void read(std::size_t link);
  void ask(int index, wire::Verb verb);
  void leaves(Client& client);
  void launched(Box& box, Client& client);
  void told(const kube::Pod& pod);
  void pass_time();
  std::optional<Time> next_time() const;

  // choices.cpp
  void list_prompt();
  void list_faults();
  void add(Kind kind, std::size_t a = 0, std::size_t b = 0, bool late = false);
  void fault(const Choice& choice);

  const Variant& variant_;
  int faults_;
  bool tell_;
  bool faulty_ = false, finals_ = false;
  std::string verdict_;
  std::vector<Choice> choices_;
  Time now_{std::chrono::seconds(100'000)};
  std::uint64_t last_id_ = 0, last_instance_ = 0, last_version_ = 1;

  std::array<Box, k_boxes> boxes_;
  std::deque<Link> links_;
  std::array<bool, k_contents> on_node_{true};
  std::deque<Task> tasks_;
  bool busy_ = false, again_ = false, fail_pull_ = false;
  std::optional<Time> retry_at_, late_hearing_, late_task_;

  PodVersion pod_;
  std::deque<PodVersion> recent_;  // versions since the oldest answer that is on its way
  std::deque<Request> requests_;

  std::optional<agent::Core> core_;
  int life_ = 0;
  bool was_before_ = false, pumping_ = false, first_pod_ = false;
  std::set<agent::User> users_;
  bool watching_ = false, getting_ = false;
  std::deque<PodVersion> stream_;
  std::optional<Time> late_stream_;
  std::int64_t seen_ = 0;
  std::array<Client, k_all_jobs> clients_;
  int jobs_ = k_jobs;
  std::set<uid_t> left_;                   // whose jobs have left something
  std::array<bool, k_contents> learnt_{};  // the agent has been shown what can start without a pause
};

}  // namespace glidepod::explore
