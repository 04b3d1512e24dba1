#include "pilot-agent/withdrawal.hpp"

#include <doctest/doctest.h>

#include <filesystem>

#include "lib/base/file.hpp"
#include "lib/base/log.hpp"
#include "tests/temporary_folder.hpp"

using namespace glidepod;
using namespace glidepod::agent;

namespace {

struct Pod {
  TemporaryFolder own;
  Loop loop = Loop::create().value();
  std::vector<std::string> orders;
  std::unique_ptr<Withdrawal> withdrawal;

  Pod() { spdlog::set_level(spdlog::level::off); }
  void begin(const std::string& folder = {}) {
    withdrawal = Withdrawal::create(loop, (folder.empty() ? own.path : folder) + "/drained",
                                    [this](const std::string& reason) { orders.push_back(reason); })
                     .value();
  }
  void put(const std::string& text) const { REQUIRE(replace_file(own.path + "/drained", text, 0600).ok()); }
  void run(std::size_t turns) {
    for (std::size_t i = 0; i < turns && orders.empty(); ++i) REQUIRE(loop.run_once(Milliseconds(5)).ok());
  }
};

}  // namespace

TEST_CASE("withdrawal: the first reason counts, once, whatever stands there later") {
  Pod pod;
  pod.put("");
  pod.begin();
  pod.run(20);
  CHECK(pod.orders.empty());
  pod.put("new disks\n\x1b[2J in n1");
  pod.run(1000);
  REQUIRE(pod.orders.size() == 1);
  CHECK(pod.orders[0].starts_with("new disks"));
  CHECK(pod.orders[0].find('\n') == std::string::npos);
  pod.put("");
  pod.put("another");
  for (int i = 0; i < 120; ++i) REQUIRE(pod.loop.run_once(Milliseconds(5)).ok());
  CHECK(pod.orders.size() == 1);
}

TEST_CASE("withdrawal: an agent that starts again is told what an earlier one was") {
  Pod pod;
  pod.put(std::string(5000, 'x'));
  pod.begin();
  pod.run(1000);
  REQUIRE(pod.orders.size() == 1);
  CHECK(pod.orders[0].size() <= 203);
}

TEST_CASE("withdrawal: a pod without the file, or without its folder, is never drained") {
  Pod pod;
  SUBCASE("no file") {
    pod.begin();
  }
  SUBCASE("no folder") {
    pod.begin(pod.own.path + "/none");
  }
  pod.run(20);
  CHECK(pod.orders.empty());
}
