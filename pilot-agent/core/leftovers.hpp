#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "pilot-agent/core/actions.hpp"
#include "pilot-agent/core/containers.hpp"
#include "pilot-agent/core/state.hpp"
#include "pilot-agent/core/types.hpp"

namespace glidepod::agent {

// What jobs have left in the places that the pod's containers share, because their glue was killed or had no
// time to remove it. It can be removed once nothing of the job can write any more: when its container has
// ended.
class Leftovers {
 public:
  Leftovers(const Policy& policy, Containers& containers, Actions& actions)
      : policy_(policy), containers_(containers), actions_(actions) {}

  // Of earlier agents of this pod, which did not see the jobs of these users end.
  void inherit(const std::set<User>& users);
  // The pod is known. A glue that was told to clear up by an earlier agent goes on for a while.
  void begin(Time now);
  // A job of this user may have left something, and its processes may live until the container has ended.
  void add(const User& user, const std::string& container);
  // This container has ended.
  void ended(const std::string& container);
  // Glue has removed what this user has left, except in containers that have not ended.
  void forget(uid_t uid);
  // Has idle glues clear up. A glue that failed at this is not asked again before its container is made anew.
  void clear(Time now);
  // What came of it: glue has ended, could not do it, or is gone.
  void cleared(Container& container, const wire::JobEnded& ended, Time now);
  void not_cleared(Container& container, Time now);
  void glue_gone(const Container& container);
  // Whether a glue of an earlier agent's time may still clear up for this user.
  bool earlier_clears(uid_t uid) const;
  void on_time(Time now);
  std::optional<Time> next_deadline() const { return earlier_cleared_at_; }
  // The users who have a job, or who may have left something.
  std::set<User> users() const;

 private:
  friend struct Inside;  // as in core.hpp
  // Every container has ended in which an earlier agent had a job.
  void earlier_ended() { ended({}); }
  void rest(Container& container, EventKind event, Time now);
  // Something to clear up now, of a user who has no job that runs or is about to; it is not listed any more.
  std::optional<Left> take(const std::function<bool(uid_t)>& has_job);

  const Policy& policy_;
  Containers& containers_;
  Actions& actions_;
  std::vector<Left> left_;
  std::optional<Time> earlier_cleared_at_;  // from then on no glue of an earlier agent's time cleans
};

}  // namespace glidepod::agent
