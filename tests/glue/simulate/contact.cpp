#include "tests/glue/simulate/contact.hpp"

#include <algorithm>
#include <utility>

#include "tests/glue/simulate/world.hpp"

namespace glidepod::glue::simulate {

namespace {
using std::chrono::milliseconds;
using std::chrono::seconds;

// An agent that hangs up sooner is one that will not have this glue.
constexpr auto k_brief = seconds(5);
constexpr int k_most_brief = 6;
// To find one that listens; where the node is short of what a look needs, looks fail and are repeated.
constexpr auto k_found = seconds(2), k_found_with_luck = seconds(30);
}  // namespace

void Contact::awaited() {
  world_.check(!awaited_, "that an agent is awaited is said once");
  awaited_ = true;
}

void Contact::connected() {
  connected_ = true;
  awaited_ = false;
  connected_at_ = world_.now();
}

void Contact::looks() {
  world_.check(world_.shm_files == 0, "who finds glue finds its /dev/shm empty");
  world_.check(!sure_ || world_.now() >= earliest_,
               "an agent that hangs up at once is not asked again at once");
}

void Contact::may_look() {
  earliest_ = world_.now();
}

void Contact::hangs_up() {
  hung_up_at_ = world_.now();
}

void Contact::lost() {
  hung_up_at_.reset();
}

void Contact::free() {
  if (!std::exchange(connected_, false)) return;
  const auto lasted = world_.now() - connected_at_;
  sure_ = sure_ && std::chrono::abs(lasted - k_brief) > milliseconds(100);
  brief_ = lasted < k_brief ? std::min(brief_ + 1, k_most_brief) : 0;
  earliest_ = world_.now() + (brief_ <= 1 ? seconds(0) : seconds(1 << (brief_ - 2))) - milliseconds(1);
}

void Contact::listens(bool does) {
  if (does && !listens_since_) listens_since_ = world_.now();
  if (!does) listens_since_.reset();
}

void Contact::check(bool busy) const {
  const auto now = world_.now();
  world_.check(!hung_up_at_ || now - *hung_up_at_ < k_found, "an agent that has hung up is missed");
  if (connected_ || busy) return;
  world_.check(awaited_ || now < earliest_ + seconds(2), "who waits for an agent has said so");
  if (!listens_since_ || !sure_) return;
  const auto limit = world_.weather.no_resources > 0 ? k_found_with_luck : k_found;
  world_.check(now - std::max(*listens_since_, earliest_) < limit, "an agent that listens is found");
}

}  // namespace glidepod::glue::simulate
