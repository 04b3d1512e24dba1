#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/kube/failure.hpp"
#include "lib/kube/pulls.hpp"
#include "pilot-agent/core/actions.hpp"
#include "pilot-agent/core/trouble.hpp"
#include "pilot-agent/core/types.hpp"

namespace glidepod::agent {

// The images that somebody else is asked to have pulled beside the pod, so that no payload container waits
// for one. pilot-agent/README.md has the states and the rules.
enum class PullState : std::uint8_t {
  none,     // nobody wants it, or it is on the node
  asked,    // it is asked for; nobody has answered
  pulling,  // somebody is at it
  failing,  // the kubelet has told of trouble that may pass
  silent,   // there is no answer, or no help: a container pulls it, as without pullers
};
constexpr std::size_t k_pull_states = 5;
enum class PullEvent : std::uint8_t {
  wanted,    // a request waits for it
  pulling,   // the answers
  ready,     //
  trouble,   // the kubelet cannot pull it
  lost,      // nobody will
  refused,   // the API did not take the question
  time,      // a limit has passed
  unwanted,  // no request waits any more
};
constexpr std::size_t k_pull_events = 8;
std::string_view name_of(PullState state);
std::string_view name_of(PullEvent event);

struct PullTransition {
  PullState from;
  PullEvent event;
  PullState to;
  friend bool operator==(const PullTransition&, const PullTransition&) = default;
};
// All that there are, as pilot-agent/README.md has them.
std::span<const PullTransition> pull_transitions();

class Pulls {
 public:
  explicit Pulls(Policy policy) : policy_(std::move(policy)) {}

  // What an earlier agent of this pod has left in the annotation.
  void begin(std::string_view wanted, Credentials credentials);
  // Whether a container may be switched to this image now. Where it may not, the image is asked for, by the
  // name that is to be pulled.
  bool may_switch(const std::string& image, const std::string& name, Time now);
  // A container was seen to run it; a container could not have it.
  void seen(const std::string& image);
  void missed(const std::string& image) { on_node_.erase(image); }
  // The answers, as the pod's annotation has them.
  void told(std::string_view text, Time now);
  void on_time(Time now);
  void keep_only(const std::set<std::string, std::less<>>& images);
  void patched() { in_flight_ = false; }
  void refused(const kube::Failure& failure, Time now);

  // What the annotation is to say; nothing if it says so, or is being written.
  std::optional<Want> to_tell(Time now);
  // Images that nobody will get, and why; each once.
  struct Verdict {
    std::string image;
    wire::Fault fault = wire::Fault::user;
    std::string message;
    bool counts = false;  // as of Trouble
  };
  std::vector<Verdict> take_verdicts() { return std::exchange(verdicts_, {}); }
  std::vector<Note> take_notes() { return std::exchange(notes_, {}); }
  // Whether an answer is awaited, so that the pod has to be watched.
  bool waiting() const;
  std::optional<Time> next_deadline() const;
  struct Pull {
    kube::WantedImage wanted;
    PullState state = PullState::none;
    Time until{};
    std::string trouble;
    Time failing_since{};
    bool counts = false;
  };
  // By image as jobs ask for it.
  const std::map<std::string, Pull, std::less<>>& all() const { return pulls_; }
  using Observer = std::function<void(const std::string& image, const PullTransition&)>;
  void observe(Observer observer) { observer_ = std::move(observer); }

 private:
  using Entry = std::map<std::string, Pull, std::less<>>::iterator;
  void become(Entry entry, PullState state, PullEvent event);
  void answered(Entry entry, const kube::PulledImage& answer, Time now);
  void give_up(Entry entry, wire::Fault fault, PullEvent event);
  std::vector<kube::WantedImage> open() const;

  // A question that stands in the annotation.
  struct Posted {
    kube::WantedImage wanted;
    bool ready = false;  // and need not be taken out at once
  };
  Policy policy_;
  Credentials credentials_ = Credentials::none;
  std::map<std::string, Pull, std::less<>> pulls_;
  std::set<std::string, std::less<>> on_node_;
  std::vector<Posted> posted_, before_;  // as of the patch under way, and before it
  bool in_flight_ = false;
  Time quiet_until_{};  // nobody answers: nothing is asked until then
  std::uint64_t last_ask_ = 0;
  std::vector<Verdict> verdicts_;
  std::vector<Note> notes_;
  Observer observer_;
};

}  // namespace glidepod::agent
