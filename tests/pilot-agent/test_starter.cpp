#include "pilot-agent/starter.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

using namespace glidepod;
using namespace glidepod::agent;

TEST_CASE("starter: only an infrastructure fault of a job below a starter is a vacate") {
  using wire::Fault;
  CHECK(on_failure(true, Fault::infrastructure, "condor_starter") == OnFailure::vacate);
  CHECK(on_failure(false, Fault::infrastructure, "condor_starter") == OnFailure::tell);
  CHECK(on_failure(true, Fault::user, "condor_starter") == OnFailure::tell);
  CHECK(on_failure(true, Fault::infrastructure, "bash") == OnFailure::tell);
  CHECK(on_failure(true, Fault::infrastructure, "") == OnFailure::tell);
}

TEST_CASE("starter: the parent is read past whatever a process calls itself") {
  CHECK(parent_of("12 (apptainer) S 7 12 12 0").value() == 7);
  CHECK(parent_of("12 (a) S 99 (b) R 8 1").value() == 8);
  CHECK_FALSE(parent_of("12 (x").ok());
  CHECK_FALSE(parent_of("12 (x) S").ok());
  CHECK_FALSE(parent_of("").ok());
  CHECK(find_parent(::getpid()).value().pid == ::getppid());
  CHECK_FALSE(find_parent(1 << 30).ok());
  CHECK(find_parent(::getpid()).value().uid == ::getuid());
}

TEST_CASE("starter: a starter is known by its name, and a master's by whose child it is") {
  CHECK_FALSE(is_starter(::getpid()));
  CHECK_FALSE(is_starter(1 << 30));
  CHECK(starters_of(::getpid()).empty());
  CHECK(starters_of(1 << 30).empty());
}

TEST_CASE("starter: a process is its real user's") {
  CHECK(user_of("Name:\tUid:\t7\nState:\tS\nUid:\t0\t105\t0\t105\nGid:\t9\t9\t9\t9\n").value() == 0);
  CHECK_FALSE(user_of("Name:\tx\nUid:\n").ok());
  CHECK_FALSE(user_of("").ok());
}
