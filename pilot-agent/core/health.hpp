#pragma once

#include <optional>
#include <string>
#include <utility>

#include "lib/wire/messages.hpp"
#include "pilot-agent/core/doubts.hpp"
#include "pilot-agent/core/types.hpp"

namespace glidepod::agent {

// Whether pilot and node still work.
class Health {
 public:
  // give_up_after: failures of the infrastructure in a row; 0: never.
  explicit Health(int give_up_after) : give_up_after_(give_up_after) {}

  // The infrastructure has failed. A job that starts sets the count back to 0.
  void failed(std::string why);
  void job_started() { failures_ = 0; }
  int failures() const { return failures_; }
  // Why the pilot is to give up; nothing if it is not.
  std::optional<std::string> too_many_failures() const;
  // True if it had not given up yet.
  bool give_up() { return !std::exchange(given_up_, true); }
  bool given_up() const { return given_up_; }

  // A switch has worked: the node started a container as the pod said.
  void switched(Time now) { switched_at_ = now; }
  bool proven() const { return switched_at_.has_value(); }
  bool switched_since(Time time) const { return switched_at_ > time; }

  Doubts doubts;
  Time no_test_before{};  // the next test switch that a pilot owes

 private:
  int give_up_after_;
  int failures_ = 0;
  std::string last_failure_;
  bool given_up_ = false;
  std::optional<Time> switched_at_;
};

}  // namespace glidepod::agent
