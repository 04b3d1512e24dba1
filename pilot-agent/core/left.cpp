// Idle containers remove what jobs have left (leftovers.hpp).

#include <algorithm>

#include "pilot-agent/core/core.hpp"

namespace glidepod::agent {

namespace {
// Whether the container is for a job of this user, which runs or is about to be launched. A container that
// only clears up for another job does not count.
bool is_for(const Container& container, uid_t uid) {
  if (const Job* job = container.job()) return job->request.uid == uid;
  if (const auto* reserved = std::get_if<Reserved>(&container.state)) return reserved->request.uid == uid;
  const Request* waiting = container.waiting();
  return waiting != nullptr && waiting->uid == uid;
}
}  // namespace

std::set<User> Core::users() const {
  std::set<User> users;
  for (const Container& container : containers_)
    if (const Job* job = container.job())
      users.insert({job->request.uid, job->request.gid, job->clears.has_value()});
  for (const Left& left : leftovers_.all()) users.insert(left.user);
  return users;
}

// Whether some container may still run in which an earlier agent had a job.
bool Core::has_inherited() const {
  return !pod_.known || std::ranges::any_of(containers_, &Container::inherited);
}

bool Core::is_clearing(uid_t uid) const {
  if (has_inherited() && leftovers_.earlier_clears(uid)) return true;
  return std::ranges::any_of(containers_, [uid](const Container& container) {
    return container.job() != nullptr && container.job()->clears && container.job()->request.uid == uid;
  });
}

// Has idle glues clear up. A glue that failed at this is not asked again before its container is made anew.
// For a user who is about to have a job, the launch clears up.
void Core::clear_left(Time now) {
  if (!has_inherited()) leftovers_.earlier_ended();
  const auto has_job = [this](uid_t uid) {
    return std::ranges::any_of(containers_, [uid](const Container& one) { return is_for(one, uid); });
  };
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
    become(container, std::move(draining), EventKind::left);
    actions_.add(Clear{container.glue, container.job()->id, left->user.uid, left->user.gid});
  }
}

}  // namespace glidepod::agent
