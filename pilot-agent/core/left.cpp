// What jobs have left in the places that the pod's containers share, because their glue was killed or had no
// time to remove it.

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

void Core::on_earlier_users(const std::set<User>& users) {
  for (const User& user : users) left_.push_back({user, {}, false});
}

std::set<User> Core::users() const {
  std::set<User> users;
  for (const Container& container : containers_)
    if (const Job* job = container.job())
      users.insert({job->request.uid, job->request.gid, job->clears.has_value()});
  for (const Left& left : left_) users.insert(left.user);
  return users;
}

// Notes that a job may have left something. Its processes live until its container has ended; the next Hello
// in that place tells this.
void Core::leaves(const Container& container, const Request& request) {
  std::erase_if(left_, [&](const Left& left) {
    return left.user.uid == request.uid && (left.ended || left.container == container.name);
  });
  left_.push_back({{request.uid, request.gid}, container.name, false});
}

// Forgets what a user has left, except in a container that has not ended: processes there may still write.
void Core::forget_left(uid_t uid) {
  std::erase_if(left_, [uid](const Left& left) { return left.user.uid == uid && left.ended; });
}

void Core::has_ended(const Container& container) {
  for (Left& left : left_)
    if (left.container == container.name) left.ended = true;
}

// Whether some container may still run in which an earlier agent had a job.
bool Core::has_inherited() const {
  return !pod_known_ || std::ranges::any_of(containers_, &Container::inherited);
}

bool Core::is_clearing(uid_t uid) const {
  // A glue goes on clearing up when its agent is killed. So the user counts until that glue's container has
  // ended, or has had enough time.
  const auto by_earlier = [uid](const Left& left) {
    return left.user.uid == uid && left.user.clearing && left.container.empty() && !left.ended;
  };
  if (earlier_cleared_at_ && has_inherited() && std::ranges::any_of(left_, by_earlier)) return true;
  return std::ranges::any_of(containers_, [uid](const Container& container) {
    return container.job() != nullptr && container.job()->clears && container.job()->request.uid == uid;
  });
}

// Has an idle glue clear up. A glue that failed at this is not asked again before its container is made anew.
// For a user who is about to have a job, the launch clears up.
void Core::clear_left(Time now) {
  const bool inherited = has_inherited();
  std::erase_if(left_, [&](Left& left) {
    const auto uses = [&](const Container& container) { return is_for(container, left.user.uid); };
    if (left.container.empty() && !inherited) left.ended = true;
    if (!left.ended || std::ranges::any_of(containers_, uses)) return false;
    const auto idle = std::ranges::find_if(containers_, [](const Container& container) {
      return container.kind() == State::idle && container.glue != 0 && !container.unclean;
    });
    if (idle == containers_.end()) return false;
    Draining draining;
    draining.job.request = {.any_image = true, .uid = left.user.uid, .gid = left.user.gid};
    draining.job.id = ++last_job_;
    draining.job.clears = left;
    draining.job.pulse.next = now + policy_.beat;
    draining.until = now + policy_.ending_patience;
    become(*idle, std::move(draining), EventKind::left);
    act(Clear{idle->glue, last_job_, left.user.uid, left.user.gid});
    return true;
  });
}

}  // namespace glidepod::agent
