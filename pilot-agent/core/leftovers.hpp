#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "pilot-agent/core/state.hpp"
#include "pilot-agent/core/types.hpp"

namespace glidepod::agent {

// What jobs have left in the places that the pod's containers share, because their glue was killed or had no
// time to remove it. It can be removed once nothing of the job can write any more: when its container has
// ended.
class Leftovers {
 public:
  // Of earlier agents of this pod, which did not see the jobs of these users end.
  void inherit(const std::set<User>& users);
  // The pod is known. A glue that was told to clear up by an earlier agent goes on for a while.
  void begin(Time now);
  // A job of this user may have left something, and its processes may live until the container has ended.
  void add(const User& user, const std::string& container);
  // Clearing this up has failed.
  void put_back(const Left& left) { left_.push_back(left); }
  // This container has ended; and so has every one in which an earlier agent had a job.
  void ended(const std::string& container);
  void earlier_ended() { ended({}); }
  // Glue has removed what this user has left, except in containers that have not ended.
  void forget(uid_t uid);
  // Something to clear up now, of a user who has no job that runs or is about to; it is not listed any more.
  std::optional<Left> take(const std::function<bool(uid_t)>& has_job);

  // Whether a glue of an earlier agent's time may still clear up for this user.
  bool earlier_clears(uid_t uid) const;
  void on_time(Time now);
  std::optional<Time> next_deadline() const { return earlier_cleared_at_; }
  const std::vector<Left>& all() const { return left_; }

 private:
  std::vector<Left> left_;
  std::optional<Time> earlier_cleared_at_;  // from then on no glue of an earlier agent's time cleans
};

}  // namespace glidepod::agent
