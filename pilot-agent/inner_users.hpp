#pragma once

#include <sys/types.h>

#include <deque>
#include <set>

#include "lib/base/result.hpp"

namespace glidepod::agent {

// The users, and groups of the same numbers, of pilot jobs' own jobs. Nobody has one that another still has:
// the next is one that was never given or, when all were, the one that was given back longest ago.
class InnerUsers {
 public:
  // Below 65536, which is all that a pod with a user namespace of its own has.
  static constexpr uid_t k_first = 40'000;
  static constexpr uid_t k_count = 20'000;

  // busy: those that an earlier agent gave, or whose leavings are still somewhere.
  Result<uid_t> take(const std::set<uid_t>& busy);
  void give_back(uid_t user);

 private:
  uid_t given_ = 0;  // so many of the first were given, or were busy then
  std::set<uid_t> taken_;
  std::deque<uid_t> free_;
};

}  // namespace glidepod::agent
