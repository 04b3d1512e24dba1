#include "pilot-agent/inner_users.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace glidepod;
using namespace glidepod::agent;

TEST_CASE(
    "inner users: one that somebody has is not given again, however many jobs came and went meanwhile") {
  InnerUsers users;
  const uid_t first = users.take({}).value();
  CHECK(first == InnerUsers::k_first);
  for (uid_t i = 0; i < 3 * InnerUsers::k_count; ++i) {
    const uid_t other = users.take({}).value();
    REQUIRE(other != first);
    REQUIRE(other >= InnerUsers::k_first);
    REQUIRE(other < InnerUsers::k_first + InnerUsers::k_count);
    users.give_back(other);
  }
}

TEST_CASE("inner users: the one that was given back longest ago comes next, and one is given back once") {
  InnerUsers users;
  std::vector<uid_t> all;
  for (uid_t i = 0; i < InnerUsers::k_count; ++i) all.push_back(users.take({}).value());
  CHECK(std::set<uid_t>(all.begin(), all.end()).size() == InnerUsers::k_count);
  CHECK_FALSE(users.take({}).ok());
  for (const std::size_t i : {7U, 3U, 7U, 9U}) users.give_back(all[i]);
  users.give_back(InnerUsers::k_first - 1);
  CHECK(users.take({}).value() == all[7]);
  CHECK(users.take({}).value() == all[3]);
  CHECK(users.take({}).value() == all[9]);
  CHECK_FALSE(users.take({}).ok());
}

TEST_CASE("inner users: whom an earlier agent's jobs had waits until nothing of them is left") {
  InnerUsers users;
  const std::set<uid_t> busy{InnerUsers::k_first, InnerUsers::k_first + 2};
  CHECK(users.take(busy).value() == InnerUsers::k_first + 1);
  CHECK(users.take(busy).value() == InnerUsers::k_first + 3);
  for (uid_t i = 4; i < InnerUsers::k_count; ++i) REQUIRE(users.take(busy).ok());
  CHECK_FALSE(users.take(busy).ok());
  CHECK(users.take({InnerUsers::k_first}).value() == InnerUsers::k_first + 2);
  CHECK(users.take({}).value() == InnerUsers::k_first);
}
