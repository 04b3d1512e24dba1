#include "pilot-agent/loans.hpp"

#include <doctest/doctest.h>

#include <filesystem>

#include "tests/temporary_folder.hpp"

using namespace glidepod;
using namespace glidepod::agent;
namespace fs = std::filesystem;

namespace {

// Loans of folders that are there, of this user's.
struct Lender {
  TemporaryFolder scratch;
  Loop loop = Loop::create().value();
  int returned = 0;
  std::unique_ptr<Loans> loans = Loans::create(loop, [this] { ++returned; }).value();
  std::vector<bool> lent;

  Result<Lent> lend(ClientId client, JobId pilot, const std::string& folder = "dir_2") {
    const Lent what{.scratch = scratch.path,
                    .sandbox = scratch.path + "/dir_1",
                    .folder = scratch.path + "/dir_1/" + folder,
                    .owner = ::geteuid(),
                    .group = ::getegid(),
                    .above = {::geteuid()}};
    fs::create_directories(scratch.path + "/dir_1/dir_2");
    return loans->lend(client, pilot, what, {},
                       [this](const Result<void>& done) { lent.push_back(done.ok()); });
  }
  void run_until(const std::function<bool()>& done) {
    for (int i = 0; i < 100 && !done(); ++i) REQUIRE(loop.run_once(std::chrono::seconds(5)));
    REQUIRE(done());
  }
};

}  // namespace

TEST_CASE("loans: each borrower is a user of its own, and a pilot job's borrowers are one family") {
  Lender lender;
  const auto first = lender.lend(1, 7), second = lender.lend(2, 7), other = lender.lend(3, 8);
  REQUIRE((first && second && other));
  CHECK(first->borrower != second->borrower);
  CHECK(first->borrower != other->borrower);
  CHECK(first->family == second->family);
  CHECK(first->family != other->family);
  lender.run_until([&] { return lender.lent.size() == 3; });
}

TEST_CASE("loans: a folder that is not there is not lent, and whoever is gone is not told") {
  Lender lender;
  REQUIRE(lender.lend(1, 7, "none"));
  lender.run_until([&] { return !lender.lent.empty(); });
  CHECK_FALSE(lender.lent[0]);
  REQUIRE(lender.lend(2, 7, "none"));
  lender.loans->forget(2);
  lender.run_until([&] { return lender.returned > 0; });
  CHECK(lender.lent.size() == 1);
}

TEST_CASE("loans: an answer waits until the folder is back, and that until the job is over") {
  Lender lender;
  std::vector<std::string> told;
  const auto tell = [&](ClientId client, const std::string& what) {
    lender.loans->when_returned(client, [&told, what] { told.push_back(what); });
  };
  tell(1, "nothing on loan");
  CHECK(told == std::vector<std::string>{"nothing on loan"});

  REQUIRE(lender.lend(1, 7));
  lender.loans->launched(1, 70);
  tell(1, "after the job");
  lender.loans->forget(1);
  REQUIRE(lender.lend(2, 7));
  tell(2, "never launched");
  lender.run_until([&] { return told.size() == 2; });
  CHECK(told[1] == "never launched");
  CHECK(lender.returned == 1);
  lender.loans->over(70);
  lender.run_until([&] { return lender.returned == 2; });
  CHECK(told.back() == "after the job");
  tell(2, "back already");
  CHECK(told.back() == "back already");
}
