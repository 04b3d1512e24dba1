// Idle containers remove what jobs have left (leftovers.hpp).

#include "pilot-agent/core/core.hpp"

namespace glidepod::agent {

std::set<User> Core::users() const {
  std::set<User> users;
  for (const Container& container : containers_)
    if (const Job* job = container.job())
      users.insert({job->request.uid, job->request.gid, job->clears.has_value()});
  for (const Left& left : leftovers_.all()) users.insert(left.user);
  return users;
}

// Has idle glues clear up. A glue that failed at this is not asked again before its container is made anew.
// For a user who is about to have a job, the launch clears up.
void Core::clear_left(Time now) {
  if (pod_.known && !containers_.has_inherited()) leftovers_.earlier_ended();
  const auto has_job = [this](uid_t uid) { return containers_.has_job_of(uid); };
  const auto may_clear = [](const Container& container) {
    return container.kind() == State::idle && container.glue != 0 && !container.unclean;
  };
  for (Container& container : containers_) {
    if (!may_clear(container)) continue;
    const auto left = leftovers_.take(has_job);
    if (!left) return;
    Draining draining;
    draining.job.request = {.any_image = true, .uid = left->user.uid, .gid = left->user.gid};
    draining.job.id = actions_.next_job();
    draining.job.clears = left;
    draining.job.pulse.next = now + policy_.beat;
    draining.until = now + policy_.ending_patience;
    containers_.become(container, std::move(draining), EventKind::left);
    actions_.add(Clear{container.glue, container.job()->id, left->user.uid, left->user.gid});
  }
}

}  // namespace glidepod::agent
