#include "pilot-agent/core/leftovers.hpp"

#include <algorithm>

namespace glidepod::agent {

namespace {
// A glue ends its cleaning by itself within this time (glue/cleanup.hpp).
constexpr std::chrono::seconds k_cleared_within{30};
}  // namespace

void Leftovers::inherit(const std::set<User>& users) {
  for (const User& user : users) left_.push_back({user, {}, false});
}

void Leftovers::begin(Time now) {
  const auto clearing = [](const Left& left) { return left.user.clearing; };
  if (std::ranges::any_of(left_, clearing)) earlier_cleared_at_ = now + k_cleared_within;
}

void Leftovers::add(const User& user, const std::string& container) {
  std::erase_if(left_, [&](const Left& left) {
    return left.user.uid == user.uid && (left.ended || left.container == container);
  });
  left_.push_back({{user.uid, user.gid}, container, false});
}

void Leftovers::ended(const std::string& container) {
  for (Left& left : left_)
    if (left.container == container) left.ended = true;
}

void Leftovers::forget(uid_t uid) {
  std::erase_if(left_, [uid](const Left& left) { return left.user.uid == uid && left.ended; });
}

std::optional<Left> Leftovers::take(const std::function<bool(uid_t)>& has_job) {
  const auto found =
      std::ranges::find_if(left_, [&](const Left& left) { return left.ended && !has_job(left.user.uid); });
  if (found == left_.end()) return std::nullopt;
  Left left = std::move(*found);
  left_.erase(found);
  return left;
}

// For a user who is about to have a job, the launch clears up.
void Leftovers::clear(Time now) {
  if (containers_.known() && !containers_.has_inherited()) earlier_ended();
  const auto has_job = [this](uid_t uid) {
    return containers_.has_job_of(uid) || containers_.is_clearing(uid);
  };
  for (Container& container : containers_) {
    if (container.kind() != State::idle || container.glue == 0 || container.unclean) continue;
    const auto left = take(has_job);
    if (!left) return;
    const JobId id = actions_.next_job();
    containers_.become(container,
                       Clearing{*left, id, {.next = now + policy_.beat}, now + policy_.ending_patience},
                       EventKind::left);
    actions_.add(Clear{container.glue, id, left->user.uid, left->user.gid});
  }
}

void Leftovers::cleared(Container& container, const wire::JobEnded& ended, Time now) {
  const User user = std::get<Clearing>(container.state).left.user;
  actions_.note("event=cleared uid={} container={} removed={}", user.uid, container.name,
                ended.files_removed);
  if (!ended.clean) {
    container.spoiled = container.unclean = true;
    add(user, container.name);
  }
  rest(container, EventKind::ended, now);
}

// In a fresh container glue may be able to clear up what it cannot clear up in this one.
void Leftovers::not_cleared(Container& container, Time now) {
  left_.push_back(std::get<Clearing>(container.state).left);
  container.spoiled = container.unclean = true;
  rest(container, EventKind::no_launch, now);
}

void Leftovers::glue_gone(const Container& container) {
  const auto& clearing = std::get<Clearing>(container.state);
  add(clearing.left.user, container.name);
  actions_.add(JobOver{clearing.id});
}

void Leftovers::rest(Container& container, EventKind event, Time now) {
  const JobId id = std::get<Clearing>(container.state).id;
  container.last_used = now;
  containers_.become(container, Idle{}, event);
  actions_.add(JobOver{id});
}

std::set<User> Leftovers::users() const {
  std::set<User> users;
  for (const Container& container : containers_) {
    if (const Job* job = container.job()) users.insert({job->request.uid, job->request.gid});
    if (const auto* clearing = std::get_if<Clearing>(&container.state))
      users.insert({clearing->left.user.uid, clearing->left.user.gid, true});
  }
  for (const Left& left : left_) users.insert(left.user);
  return users;
}

// The user counts until that glue's container has ended, or has had enough time.
bool Leftovers::earlier_clears(uid_t uid) const {
  return earlier_cleared_at_ && std::ranges::any_of(left_, [uid](const Left& left) {
           return left.user.uid == uid && left.user.clearing && left.container.empty() && !left.ended;
         });
}

void Leftovers::on_time(Time now) {
  if (earlier_cleared_at_ && now >= *earlier_cleared_at_) earlier_cleared_at_.reset();
}

}  // namespace glidepod::agent
