#include "tests/glue/simulate/workers.hpp"

#include <algorithm>
#include <utility>

#include "tests/glue/simulate/world.hpp"

namespace glidepod::glue::simulate {

namespace {
using std::chrono::seconds;

// Of a count, and from its end to the next one, which is also ten times as long as it took.
constexpr auto k_counting = seconds(30);
constexpr auto k_counted = seconds(50);
// glue hears late of a count's end, and its pause is ten times as long as it thinks that took.
constexpr auto k_late = seconds(15);
// From a try to empty a /dev/shm that has removed nothing to the next one.
constexpr auto k_vain = seconds(9);
constexpr auto k_at_once = seconds(1);
}  // namespace

void Workers::cleaner_begins(Process& cleaner, bool as_root, const User& user, Milliseconds limit) {
  world_.check(user.uid != 0, "what is root's is not cleaned");
  world_.check(user.gid == user.uid, "what is cleaned is the user's, with the user's group");
  for (const Process* other : world_.tree.children(Tree::k_glue))
    world_.check(other->kind != Process::Kind::cleaner || other == &cleaner || other->killed ||
                     other->state == Process::State::zombie,
                 "one cleaner at a time");
  root_cleaners_ = as_root ? root_cleaners_ + 1 : 0;
  world_.check(root_cleaners_ <= 1, "root cleans once after a user");
  world_.check(limit <= (as_root ? seconds(5) : seconds(20)), "a cleaner knows its time");
  cleaner.overdue = world_.now() + limit;
}

void Workers::asked(bool runs_freely) {
  const auto children = world_.tree.children(Tree::k_glue);
  const bool counts = std::ranges::any_of(
      children, [](const Process* child) { return child->kind == Process::Kind::counter; });
  due_ = runs_freely && !counts && world_.now() >= next_ + k_late;
}

void Workers::count_begins() {
  due_ = false;
  world_.check(world_.truth.runs_freely(), "what is counted is a running job's");
  world_.check(world_.now() >= next_, "what was counted is not counted again at once");
  for (const Process* process : world_.tree.children(Tree::k_glue))
    world_.check(process->kind != Process::Kind::counter, "one count at a time");
  counting_ = true;
  begun_ = world_.now();
  next_ = begun_ + k_counted;
}

void Workers::nothing_to_count() {
  forget();
  next_ = world_.now() + k_counted;
}

void Workers::newest(Count count) {
  before_ = newest_;
  newest_ = count;
  newest_at_ = world_.now();
}

void Workers::counted(const Counted& count) {
  if (!counting_) return;  // of a job that has ended
  has_counted_ = true;
  newest({count.kib, count.complete});
}

// One that has not counted has told nothing.
void Workers::count_ended() {
  if (!std::exchange(counting_, false)) return;
  const auto now = world_.now();
  next_ = now + std::max<SteadyTime::duration>(k_counted, 10 * (now - begun_));
  if (!std::exchange(has_counted_, false)) newest({newest_.first, false});
}

void Workers::told(std::int64_t kib, bool complete) {
  const Count count{kib, complete};
  if (count == newest_) before_ = newest_;
  const bool soon = world_.now() - newest_at_ < k_at_once;
  world_.check(count == newest_ || (soon && count == before_),
               "a beat tells what was counted last of this job");
}

void Workers::forget() {
  before_ = newest_ = {0, true};
  due_ = counting_ = has_counted_ = false;
  next_ = {};
}

// One that has removed nothing would not do so at once, either.
void Workers::remover_begins(const User& user) {
  world_.check(user.uid == 5001 && user.gid == 5001, "a remover has the rights of whose files they are");
  for (const Process* other : world_.tree.children(Tree::k_glue))
    world_.check(other->kind != Process::Kind::remover || other->state == Process::State::zombie,
                 "one remover at a time");
  world_.check(world_.now() >= remover_next_, "what nobody can remove is not tried at once again");
  remover_next_ = world_.now() + k_vain;
}

void Workers::removed(std::uint32_t files) {
  remover_next_ = files > 0 ? SteadyTime() : world_.now() + k_vain;
}

void Workers::check() const {
  world_.check(!due_, "what is on disk is counted when the agent asks and it is time");
  const auto now = world_.now();
  for (const Process* process : world_.tree.children(Tree::k_glue)) {
    if (process->state == Process::State::zombie || process->stuck) continue;
    const bool counts = process->kind == Process::Kind::counter;
    world_.check(!counts || now - begun_ <= k_counting + k_at_once, "a count that hangs is killed");
    world_.check(process->killed || process->overdue > now - k_at_once, "a worker that hangs is killed");
  }
}

}  // namespace glidepod::glue::simulate
