#include "provisioner/service/decision_log.hpp"

#include <doctest/doctest.h>
#include <spdlog/sinks/sink.h>
#include <spdlog/spdlog.h>

#include "tests/provisioner/group.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;

namespace {

struct Lines : spdlog::sinks::sink {
  std::vector<std::string> all;
  void log(const spdlog::details::log_msg& line) override {
    all.emplace_back(line.payload.data(), line.payload.size());
  }
  void flush() override {}
  void set_pattern(const std::string&) override {}
  void set_formatter(std::unique_ptr<spdlog::formatter>) override {}
};

std::vector<std::string> logged(const Plan& plan) {
  const auto lines = std::make_shared<Lines>();
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", lines));
  DecisionLog().decided(plan);
  spdlog::set_default_logger(before);
  return lines->all;
}

}  // namespace

TEST_CASE("decision log: so many decisions, how many more, and none that changes nothing") {
  Plan plan;
  for (int i = 0; i < 1003; ++i) {
    Decision decision;
    decision.group = group(i + 1);
    decision.verdict = i == 0 ? Decision::Verdict::enough : Decision::Verdict::submit;
    plan.decisions.push_back(decision);
  }
  const auto lines = logged(plan);
  REQUIRE(lines.size() == 1001);
  CHECK(lines.front().starts_with("event=decision group="));
  CHECK(lines.back() == "event=decisions more=2");
  plan.decisions.resize(1001);
  CHECK(logged(plan).size() == 1000);
}
