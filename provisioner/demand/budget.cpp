#include "provisioner/demand/budget.hpp"

#include <time.h>

namespace glidepod::provisioner {

namespace {

using std::chrono::nanoseconds;

// An ad with plain numbers takes some 20 us: 10,000 groups of one owner are well below both.
constexpr nanoseconds k_most_of_owner = std::chrono::seconds(1), k_most_of_all = std::chrono::seconds(5);

}  // namespace

nanoseconds AnswerBudget::processor_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

AnswerBudget::Spent AnswerBudget::read(const std::string& owner, const std::function<void()>& ad) {
  if (all_ >= k_most_of_all) return Spent::by_all;
  auto& own = owners_[owner];
  if (own >= k_most_of_owner) return Spent::by_owner;
  const auto began = clock_();
  ad();
  const auto took = clock_() - began;
  own += took;
  all_ += took;
  return Spent::no;
}

}  // namespace glidepod::provisioner
