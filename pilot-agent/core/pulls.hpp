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
#include "pilot-agent/core/image.hpp"
#include "pilot-agent/core/trouble.hpp"
#include "pilot-agent/core/types.hpp"

namespace glidepod::agent {

// Images that the provisioner is asked to pull beside the pod, so that no payload container waits for a pull.
// pilot-agent/README.md has the states and the rules.
enum class PullState : std::uint8_t {
  none,     // no request wants the image, or it is on the node
  asked,    // the agent has asked for it; there is no answer yet
  pulling,  // a puller pulls it
  failing,  // the kubelet has told of trouble that may pass
  silent,   // no answer or no help came: a payload container pulls it, as without pullers
};
constexpr std::size_t k_pull_states = 5;
enum class PullEvent : std::uint8_t {
  wanted,    // a request waits for the image
  pulling,   // answer: a puller pulls it
  ready,     // answer: it is on the node
  trouble,   // answer: the kubelet cannot pull it
  lost,      // answer: nobody will pull it
  refused,   // the API did not take the annotation
  time,      // a deadline has passed
  unwanted,  // no request waits for it any more
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
// All transitions, as pilot-agent/README.md has them.
std::span<const PullTransition> pull_transitions();

class Pulls {
 public:
  explicit Pulls(Policy policy) : policy_(std::move(policy)) {}

  // wanted: what an earlier agent of this pod has left in the annotation.
  void begin(const std::vector<kube::WantedImage>& wanted, Credentials credentials);
  // Whether a container may be switched to this image now. If not, the agent asks for the image. name: the
  // name to pull it by.
  bool may_switch(const Image& image, const std::string& name, Time now);
  // seen(): a container runs this image. missed(): a container could not get it.
  void seen(const Image& image);
  void missed(const Image& image);
  // text: the answers, as the pod's annotation has them.
  void told(const std::vector<kube::PulledImage>& answers, Time now);
  void on_time(Time now);
  // names: of the images that requests wait for. The others are wanted no more.
  void keep_only(const std::set<std::string, std::less<>>& names);
  void patched() { in_flight_ = false; }
  void refused(const kube::Failure& failure, Time now);

  // The new text of the annotation; nothing if the annotation has it already, or is being written.
  std::optional<Want> to_tell(Time now);
  // Images that cannot be pulled, and why. Each is returned once.
  struct Verdict {
    Image image;
    wire::Fault fault = wire::Fault::user;
    std::string message;
    bool counts = false;  // as in Trouble
  };
  std::vector<Verdict> take_verdicts() { return std::exchange(verdicts_, {}); }
  std::vector<Note> take_notes() { return std::exchange(notes_, {}); }
  // Whether the agent awaits an answer, so that it has to watch the pod.
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
  // By the names of jobs' images.
  const std::map<std::string, Pull, std::less<>>& all() const { return pulls_; }
  // The one of this image; null: it is not wanted.
  const Pull* find(const Image& image) const;
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
    bool ready = false;  // the image is on the node, and the question need not go at once
  };
  Policy policy_;
  Credentials credentials_ = Credentials::none;
  std::map<std::string, Pull, std::less<>> pulls_;
  std::set<std::string, std::less<>> on_node_;
  std::vector<Posted> posted_, before_;  // the questions with the patch under way, and before it
  bool in_flight_ = false;
  Time quiet_until_{};  // after a question without answer, the agent asks nothing until then
  std::uint64_t last_ask_ = 0;
  std::vector<Verdict> verdicts_;
  std::vector<Note> notes_;
  Observer observer_;
};

}  // namespace glidepod::agent
