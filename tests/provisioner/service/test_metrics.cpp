#include "provisioner/service/metrics.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "lib/base/text.hpp"
#include "provisioner/service/container_memory.hpp"
#include "tests/temporary_folder.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;

namespace {

bool has(const std::string& text, const std::string& line) {
  for (const auto& other : split(text, '\n'))
    if (other == "glidepod_provisioner_" + line) return true;
  MESSAGE(line);
  return false;
}

Plan plan_of(int groups) {
  Plan plan;
  for (int i = 1; i <= groups; ++i) {
    Decision decision;
    decision.group.cpus = i;
    decision.demand.idle = 10;
    decision.submit = 3;
    decision.verdict = Decision::Verdict::submit;
    plan.decisions.push_back(decision);
  }
  return plan;
}

}  // namespace

TEST_CASE("metrics: what a cycle saw, decided and did") {
  Metrics metrics;
  metrics.leads(true);
  Observation seen;
  seen.demand.schedds_asked = 2;
  seen.demand.schedds_vanished = 1;
  seen.demand.unmet = {{"NoSuch", {"pilots have no NoSuch", 7, {{"sky", 7}}}},
                       {"", {"pilots have no Other", 2, {{"sky", 2}}}}};
  Group group;
  group.labels = "zone:\"a\\b\"\n";
  auto plan = plan_of(2);
  plan.decisions[0].group = group;
  plan.decisions[0].supply.waiting = 4;
  seen.supply.groups[group].states = {{PodState::pull_error, 3}, {PodState::claimed, 2}};
  seen.supply.groups[group].wasted = 1;
  metrics.decided(seen, plan);
  metrics.applied(plan, {.created = 5, .removed = 1, .not_created = 2, .not_removed = 3, .problems = {"x"}},
                  Time(Seconds(77)), 0.3);
  for (const bool good : {true, false, false}) metrics.status_written(good);
  metrics.api.add("POST", 201, std::chrono::milliseconds(30));
  metrics.api.add("POST", 403, std::chrono::milliseconds(300));
  const auto text = metrics.text();
  CHECK(has(text, "unmet_jobs 9"));
  // For promtool: tests/lint/run metrics.
  if (const auto* file = ::getenv("GLIDEPOD_METRICS")) std::ofstream(file) << text;
  const auto hash = group.hash();
  for (const auto& line : List{"leader 1",
                               "took_lead_total 1",
                               "status_written_total{result=\"written\"} 1",
                               "status_written_total{result=\"failed\"} 2",
                               "schedds_vanished 1",
                               fmt::format("build_info{{version=\"{}\"}} 1", GLIDEPOD_VERSION),
                               "blind 0",
                               "groups 2",
                               "idle_jobs 20",
                               "schedds 2",
                               "pods{state=\"pull error\"} 3",
                               "pods{state=\"claimed\"} 2",
                               "pods{state=\"failed\"} 0",
                               "pods_wasted 1",
                               "groups_decided{verdict=\"submit\"} 2",
                               "decisions_total{verdict=\"submit\"} 2",
                               "pods_created_total 5",
                               "pods_removed_total 1",
                               "pod_requests_failed_total{operation=\"create\"} 2",
                               "pod_requests_failed_total{operation=\"remove\"} 3",
                               "cycles_total{result=\"decided\"} 1",
                               "last_cycle_timestamp_seconds 77",
                               "cycle_duration_seconds_bucket{le=\"0.25\"} 0",
                               "cycle_duration_seconds_bucket{le=\"0.5\"} 1",
                               "cycle_duration_seconds_bucket{le=\"+Inf\"} 1",
                               "cycle_duration_seconds_count 1",
                               "api_requests_total{method=\"POST\",code=\"403\"} 1",
                               "api_request_duration_seconds_bucket{method=\"POST\",le=\"0.05\"} 1",
                               "group_pods{group=\"" + hash +
                                   "\",cpus=\"1\",memory_mb=\"4096\",disk_kb=\"8000000\",gpus=\"0\",labels="
                                   "\"zone:\\\"a\\\\b\\\"\\n\"} 4",
                               "group_idle_jobs{group=\"" + plan.decisions[1].group.hash() +
                                   "\",cpus=\"2\",memory_mb=\"4096\",disk_kb=\"8000000\",gpus=\"0\"} 10"})
    CHECK(has(text, line));
}

TEST_CASE("metrics: while another thread prepares a cycle's the last one's are shown") {
  Metrics metrics;
  metrics.decided({}, plan_of(1));
  metrics.begin_cycle();
  metrics.prepare({}, plan_of(5));
  CHECK(has(metrics.text(), "groups 1"));
  CHECK(has(metrics.text(), "cycles_total{result=\"decided\"} 1"));
  metrics.show(plan_of(5));
  CHECK(has(metrics.text(), "groups 5"));
  CHECK(has(metrics.text(), "decisions_total{verdict=\"submit\"} 6"));
}

TEST_CASE("metrics: how often this instance began to lead") {
  Metrics metrics;
  for (const bool leads : {true, true, false, true}) metrics.leads(leads);
  CHECK(has(metrics.text(), "took_lead_total 2"));
}

TEST_CASE(
    "metrics: memory of the container, by either version of cgroups, without what the kernel can take back") {
  const TemporaryFolder folder;
  const auto file = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder.path + "/" + name) << text;
  };
  CHECK_FALSE(container_memory(folder.path));
  std::filesystem::create_directory(folder.path + "/memory");
  file("memory/memory.usage_in_bytes", "1000\n");
  file("memory/memory.limit_in_bytes", "9223372036854771712\n");
  auto memory = container_memory(folder.path);
  REQUIRE(memory);
  CHECK(memory->used == 1000);
  CHECK(memory->limit == 0);
  file("memory.current", "5000\n");
  file("memory.max", "8000\n");
  file("memory.stat", "anon 4000\ninactive_file 700\nactive_file 300\n");
  memory = container_memory(folder.path);
  CHECK(memory->used == 4300);
  CHECK(memory->limit == 8000);
  file("memory.max", "max\n");
  CHECK(container_memory(folder.path)->limit == 0);
}

// Its alarm would go on for as long as the group has jobs.
TEST_CASE("metrics: the breaker of an image that is not used any more stops nothing") {
  Metrics metrics;
  metrics.leads(true);
  auto plan = plan_of(2);
  for (auto& decision : plan.decisions) decision.image = "corrected";
  plan.history.breakers[{plan.decisions[0].group, "wrong"}].open = true;
  metrics.decided({}, plan);
  CHECK(has(metrics.text(), "breakers_open 0"));
  plan.history.breakers[{plan.decisions[0].group, "corrected"}].open = true;
  plan.decisions[1].places.push_back({.place = "west", .stopped = true});
  metrics.decided({}, plan);
  CHECK(has(metrics.text(), "breakers_open 2"));
}

TEST_CASE("metrics: every one has one help and one type before its samples, and every line is well formed") {
  Metrics metrics;
  metrics.decided({}, plan_of(3));
  metrics.applied({}, {}, Time(Seconds(1)), 1);
  metrics.api.add("GET", 0, std::chrono::seconds(2));
  std::set<std::string> helped, typed;
  for (const auto& line : split(metrics.text(), '\n')) {
    if (line.empty()) continue;
    const auto words = split(line, ' ');
    if (line.starts_with("# HELP "))
      CHECK(helped.insert(words[2]).second);
    else if (line.starts_with("# TYPE "))
      CHECK(typed.insert(words[2]).second);
    else {
      auto name = line.substr(0, line.find_first_of("{ "));
      for (const auto* end : {"_bucket", "_sum", "_count"})
        if (name.ends_with(end) && !typed.contains(name)) name.resize(name.size() - std::string(end).size());
      CHECK(typed.contains(name));
      CHECK(line.find_first_not_of("0123456789.e+-", line.rfind(' ') + 1) == std::string::npos);
    }
  }
  CHECK(helped == typed);
}

TEST_CASE("metrics: a blind cycle is told and counted, without numbers that nobody knows") {
  Metrics metrics;
  metrics.decided({}, plan_of(1));
  metrics.applied({}, {}, Time(Seconds(5)), 1);
  Plan blind;
  blind.blind = "no collector";
  metrics.decided({}, blind);
  metrics.applied(blind, {}, Time(Seconds(9)), 1);
  auto text = metrics.text();
  CHECK(has(text, "blind 1"));
  CHECK(has(text, "cycles_total{result=\"blind\"} 1"));
  CHECK(has(text, "last_cycle_timestamp_seconds 5"));
  CHECK(text.find("idle_jobs") == std::string::npos);
  metrics.forget_cycle();
  CHECK(metrics.text().find("_blind ") == std::string::npos);
}

TEST_CASE("metrics: the groups are as many as a monitoring system can bear") {
  Metrics metrics;
  metrics.decided({}, plan_of(250));
  const auto text = metrics.text();
  CHECK(has(text, "group_submit{group=\"others\"} 450"));
  CHECK(has(text, "groups 250"));
  std::size_t count = 0;
  for (const auto& line : split(text, '\n'))
    count += line.starts_with("glidepod_provisioner_group_submit{") ? 1 : 0;
  CHECK(count == 101);
}
