#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "pilot-agent/core/answers.hpp"
#include "pilot-agent/core/containers.hpp"
#include "pilot-agent/core/state.hpp"
#include "pilot-agent/core/transitions.hpp"
#include "pilot-agent/core/types.hpp"

namespace glidepod::agent {

// The requests whose job has not begun: those that have no container yet are in the queue; the others wait
// for the image of their container, or for what that image runs by itself.
class Queue {
 public:
  Queue(const Policy& policy, Containers& containers, Answers& answers)
      : policy_(policy), containers_(containers), answers_(answers) {}

  // How far the pilot's end is, each stage after the one before.
  enum class Stage : std::uint8_t {
    open,
    withdrawn,  // it takes no jobs of HTCondor's any more
    draining,   // nor anybody else's
    finishing,  // and those that it has are killed
  };
  Stage stage() const { return stage_; }
  // Goes on to this stage, and refuses the requests that it does not take.
  void close(Stage stage);
  // Why such a request is not taken; empty: it is.
  std::string_view refusal(const Request& request) const;
  // Fails these requests, wherever they wait. The switches that they waited for go on.
  void refuse(const std::function<bool(const Request&)>& which, std::string_view why);

  // Those in the queue.
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  std::size_t size() const { return all_.size(); }
  bool empty() const { return all_.empty(); }
  void add(Request request, Time now) { all_.push_back({std::move(request), now, {}, {}}); }
  // It had a container, so it is the next.
  void put_back(Waiting waiting) { all_.push_front(std::move(waiting)); }
  // Offers each to `place`, in their order. What is placed, and what is failed there, leaves the queue.
  void serve(const std::function<bool(Waiting&)>& place);
  void erase_if(const std::function<bool(const Waiting&)>& which) { std::erase_if(all_, which); }
  std::deque<Waiting> take_all() { return std::exchange(all_, {}); }
  // Those whose time is up.
  std::vector<Request> take_due(Time now);
  std::optional<Time> next_deadline() const;

  // Wherever they wait; null: none of this client's does.
  Waiting* find(ClientId client);
  void drop(ClientId client, EventKind event);
  std::vector<Request> unbegun(const std::function<bool(const Request&)>& which) const;

 private:
  const Policy& policy_;
  Containers& containers_;
  Answers& answers_;
  Stage stage_ = Stage::open;
  std::deque<Waiting> all_;
};

}  // namespace glidepod::agent
