#include "glue/counting.hpp"

#include <algorithm>

namespace glidepod::glue {

namespace {
// A long count is made as often as costs a tenth of the time.
constexpr int k_rest = 10;
}  // namespace

Counting::Counting(Loop& loop, User user, Limits limits, std::vector<std::string> folders)
    : user_(std::move(user)), limits_(limits), folders_(std::move(folders)), timer_(loop) {}

void Counting::begin() {
  const auto now = Loop::now();
  if (worker_.pid() != -1 || now < next_) return;
  begun_ = now;
  next_ = now + limits_.age;
  if (!may_have_files(user_, folders_)) {
    result_ = {};
    return;
  }
  auto worker = start_counter(user_, folders_, limits_.walk);
  if (!worker) return;
  worker_ = std::move(*worker);
  timer_.set(limits_.hung, [this] { worker_.kill(); });
}

bool Counting::ended(pid_t pid) {
  if (pid != worker_.pid()) return false;
  timer_.stop();
  const auto now = Loop::now();
  next_ = now + std::max<SteadyTime::duration>(limits_.age, k_rest * (now - begun_));
  // A count that was killed has told nothing.
  result_ = worker_.ended<Counted>().value_or(Counted{result_.kib, false});
  return true;
}

pid_t Counting::hand_over() {
  timer_.stop();
  return worker_.pid();
}

}  // namespace glidepod::glue
