#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pilot-agent/core/core.hpp"
#include "tests/simulate/api.hpp"

namespace glidepod::simulate {

class Glue;
class World;

// The agent: the real core, and what pilot-agent/agent.cpp and lib/kube/client.cpp make of its actions.
class Driver {
 public:
  explicit Driver(World& world) : world_(world) {}

  using Event = std::function<void(agent::Core&, agent::Time)>;
  void start();
  void die();  // SIGKILL: all connections end, and what it asked of the API may still happen
  bool up() const { return core_.has_value(); }
  bool given_up() const { return given_up_; }
  void drain();  // the pod is to be deleted
  // Its command has ended by itself, and with it all jobs: what pilot-agent/main.cpp and agent.cpp do then.
  void leave();
  enum class End : std::uint8_t { none, well, failed };
  End end() const { return end_; }
  void withdraw();  // an operator drains the pod
  bool draining() const { return draining_ || withdrawn_; }
  const agent::Core* core() const { return core_ ? &*core_ : nullptr; }
  // What the kernel tells the core.
  void tell(const Event& what);

  // A glue connects (0: nobody listens), says something, and is gone. What one connection says stays in
  // order.
  agent::GlueId connect(int box, std::uint64_t instance);
  void from_glue(agent::GlueId glue, std::string_view event, Event what);
  void hang_up(agent::GlueId glue);
  std::optional<agent::State> state_of(std::string_view container) const {
    return core_ ? core_->containers().state_of(container) : std::nullopt;
  }

  // An apptainer connects and asks; 0: nobody listens.
  agent::ClientId next_client() { return up() ? ++last_id_ : 0; }
  void bind(agent::Request request);
  void announce(agent::Request job);
  void client_gone(agent::ClientId client);
  // Whether an image that the container is to have may not be in the pod yet.
  bool patching(const std::string& container) const { return patches_.contains(container); }
  bool serves(agent::ClientId client) const { return clients_.contains(client); }

 private:
  struct Link {
    int box = 0;
    std::uint64_t instance = 0;
    SteadyTime to_agent{}, to_glue{};
  };
  void pump();
  void run(const agent::Patch& action);
  void run(const agent::Resize& action);
  void run(const agent::Want& action);
  void run(const agent::Launch& action);
  void run(const agent::Clear& action);
  void run(const agent::AskImage& action);
  void run(const agent::SignalJob& action);
  void run(const agent::Answer& action);
  void run(const agent::Fail& action);
  void run(const agent::Vacate& action);
  void run(const agent::Hold& action);
  void run(const agent::FinishGlue& action);
  void run(const agent::DropGlue& action);
  void run(const agent::KillGlue& action);
  void run(const agent::SendBeat& action);
  void run(const agent::JobOver&) {}
  void run(const agent::GiveUp& action);
  void run(const agent::Note& action);
  void run(const agent::OpenSession&) {}
  void run(const agent::CloseSession&) {}
  void run(const agent::Refuse&) {}
  void close_glue(agent::GlueId glue);
  void go_on_leaving(bool in_time);
  void to_glue(agent::GlueId glue, std::function<void(Glue&)> what);
  // driver_api.cpp
  using PodHandler = std::function<void(const Api::Answer&)>;
  void exchange(const Api::Change& change, agent::Time deadline, int attempt, bool unclear,
                const PodHandler& done, std::uint64_t patch = 0);
  bool given_up(std::uint64_t patch) const;
  // What lib/kube/pod_images.cpp makes of a Patch.
  struct ImageChange {
    agent::Patch wanted;
    Api::Change tried = {};
    std::optional<kube::Failure> refusal = {};
    bool unclear = false;
  };
  void change(ImageChange change);
  void look(ImageChange change);
  void changed(const ImageChange& change, const Api::Answer& answer);
  struct SizeChange {
    agent::Resize wanted;
    std::string tried = {};  // the version
    std::optional<kube::Failure> refusal = {};
    bool unclear = false;
  };
  void resize(SizeChange change);
  void resized(const SizeChange& change, const Api::Answer& answer);
  void check_sizing();
  void check_free();
  void saw(const PodVersion& pod);
  void get_first_pod();
  void adjust_watch();
  void watch_next();
  void watch_failed(const kube::Failure& failure);
  void await_word(Milliseconds silence);
  void watched(const PodVersion& pod);
  void adjust_timer();
  // A handler of this agent's life; nothing happens if it has ended.
  template <typename F>
  auto mine(F what) {
    return [this, life = life_, what = std::move(what)](const auto&... arguments) {
      if (life == life_) what(arguments...);
    };
  }

  World& world_;
  std::optional<agent::Core> core_;
  std::uint64_t life_ = 0;
  std::uint64_t last_id_ = 0;
  std::map<agent::GlueId, Link> links_;
  std::map<agent::ClientId, bool> clients_;
  std::set<agent::User> users_;  // as the agent's file has them, which outlives it
  enum class Leaving : std::uint8_t { no, home, finish };
  Leaving leaving_ = Leaving::no;
  End end_ = End::none;
  bool pumping_ = false, was_before_ = false, given_up_ = false, draining_ = false, withdrawn_ = false;
  PodVersion seen_;                               // the newest
  std::map<std::string, std::string> once_;       // by container: its image, if that cannot come back
  std::map<std::string, std::uint64_t> patches_;  // by container: the newest attempt, without its answer yet
  std::uint64_t resize_ = 0;                      // the newest attempt, without its answer yet
  agent::Time looked_at_{};
  std::map<agent::ClientId, agent::Time> free_since_;  // by who waits while a container is free
  std::map<std::string, agent::Time> sizing_since_;    // by container that waits for its size
  std::string version_;                                // of the newest answer to a patch
  std::string watch_version_;                          // to go on from; empty: from the present state
  std::uint64_t watch_ = 0, last_watch_ = 0;           // 0: not watching
  std::uint64_t words_ = 0;                            // heard of watches
  int watch_failures_ = 0;
  std::optional<agent::Time> timer_due_;
  std::uint64_t timer_ = 0;
};

}  // namespace glidepod::simulate
