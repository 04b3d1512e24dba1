#include "pilot-agent/inner_users.hpp"

#include <algorithm>

namespace glidepod::agent {

Result<uid_t> InnerUsers::take(const std::set<uid_t>& busy) {
  while (given_ < k_count) {
    const uid_t user = k_first + given_++;
    if (!busy.contains(user)) return *taken_.insert(user).first;
    free_.push_back(user);
  }
  const auto user = std::ranges::find_if_not(free_, [&](uid_t each) { return busy.contains(each); });
  if (user == free_.end()) return error("all {} users for the jobs of pilot jobs are in use", k_count);
  const uid_t taken = *taken_.insert(*user).first;
  free_.erase(user);
  return taken;
}

void InnerUsers::give_back(uid_t user) {
  if (taken_.erase(user) > 0) free_.push_back(user);
}

}  // namespace glidepod::agent
