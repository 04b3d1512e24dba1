#include "provisioner/service/overview.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <ctime>

#include "lib/base/text.hpp"
#include "lib/condor/ad_stream.hpp"
#include "provisioner/service/running.hpp"
#include "provisioner/service/slots.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;
using Json = nlohmann::json;

namespace {

constexpr Time k_now{Seconds(1'000'000)};

Time ago(int seconds) {
  return k_now - Seconds(seconds);
}

Pod pod(const std::string& name, PodState state = PodState::unregistered, int since = 300) {
  Pod result;
  result.name = name;
  result.state = state;
  result.since = ago(since);
  result.node = "node-" + name;
  return result;
}

Slot job(const std::string& pod, const std::string& id, const std::string& state, int since = 48) {
  Slot slot{pod, true, "alice", "slot1_1@" + pod};
  slot.job = {id,           state,      ago(since), "payload-0", "reg.example/python:3.12",
              "sha256:abc", "switched", "",         2.5};
  return slot;
}

// Two pods with jobs, an idle one, and two that are on their way or not.
Json some() {
  auto waits = job("b", "13.0", "pulling", 5);
  waits.job.container = waits.job.digest = waits.job.how = "";
  waits.job.bind_s.reset();
  waits.job.waits_for = "its image, pulled beside the pod";
  Slot own{"a", false, "", "slot1@a"};
  own.containers = "payload-0=running payload-1=idle payload-2=broken";
  return {{"pods",
           pods_json({pod("a"), pod("b"), pod("c"), pod("d", PodState::pulling, 48),
                      pod("e", PodState::pull_error, 300), pod("f", PodState::succeeded)},
                     {own, job("a", "12.0", "running"), waits, {"c", false}, job("f", "1.0", "running")})}};
}

std::vector<std::string> lines_of(const std::string& text) {
  auto lines = split(text, '\n');
  CHECK(lines.back().empty());
  lines.pop_back();
  return lines;
}

std::size_t widest(const std::string& text) {
  std::size_t result = 0;
  for (const auto& line : lines_of(text)) result = std::max(result, line.size());
  return result;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::optional<Slot> slot_of(const std::string& json) {
  return read_slot(condor::ad_from_json(json).value(), "K8SPodName", Pattern::compile("pilot@.*").value());
}

}  // namespace

TEST_CASE("slots: what a pilot says of its job is read, where it is about the job that the slot has") {
  const std::string begin = R"({"K8SPodName": "p", "AuthenticatedIdentity": "pilot@x", "Name": "slot1_1@p", )"
                            R"("State": "Claimed", "RemoteOwner": "alice@x", "JobId": "12.0", )";
  const auto slot =
      slot_of(begin + R"("GlidepodJob": "12.0", "GlidepodState": "running", "GlidepodSince": 1000,
    "GlidepodContainer": "payload-1", "GlidepodImage": "img:1", "GlidepodDigest": "sha256:abc",
    "GlidepodHow": "pulled", "GlidepodBindTime": 1.25, "GlidepodWaitsFor": "x"})");
  REQUIRE(slot);
  CHECK(slot->owner == "alice");
  CHECK(slot->name == "slot1_1@p");
  CHECK(slot->job.id == "12.0");
  CHECK(slot->job.state == "running");
  CHECK(slot->job.since == Time(Seconds(1000)));
  CHECK(slot->job.container == "payload-1");
  CHECK(slot->job.image == "img:1");
  CHECK(slot->job.digest == "sha256:abc");
  CHECK(slot->job.how == "pulled");
  CHECK(slot->job.waits_for == "x");
  CHECK(slot->job.bind_s == 1.25);
  // Of the job before it; of none; of another type than it should be.
  const auto old = slot_of(begin + R"("GlidepodJob": "11.0", "GlidepodImage": "img:1"})");
  CHECK(old->job.id == "12.0");
  CHECK(old->job.image.empty());
  CHECK(slot_of(begin + R"("X": 1})")->job.image.empty());
  const auto odd = slot_of(begin + R"("GlidepodJob": "12.0", "GlidepodImage": 5, "GlidepodSince": "now",
    "GlidepodBindTime": "long", "GlidepodHow": ")" +
                           std::string(5000, 'x') + "\"}");
  CHECK(odd->job.image.empty());
  CHECK(odd->job.since == Time{});
  CHECK_FALSE(odd->job.bind_s);
  CHECK(odd->job.how.size() == 1000);
  CHECK_FALSE(slot_of(R"({"K8SPodName": "p", "AuthenticatedIdentity": "somebody@x"})"));
  CHECK_FALSE(slot_of(R"({"AuthenticatedIdentity": "pilot@x"})"));
  const auto all = slot_attributes("K8SPodName");
  CHECK(std::find(all.begin(), all.end(), "K8SPodName") != all.end());
}

TEST_CASE("overview: pods and the jobs in them as JSON, without the pods that have ended") {
  const auto pods = some()["pods"];
  REQUIRE(pods.size() == 5);
  CHECK(pods[0]["pod"] == "a");
  CHECK(pods[0]["node"] == "node-a");
  CHECK(pods[0]["state"] == "claimed");
  CHECK_FALSE(pods[0].contains("since"));
  const auto& running = pods[0]["jobs"][0];
  CHECK(running == Json{{"slot", "slot1_1@a"},
                        {"job", "12.0"},
                        {"owner", "alice"},
                        {"state", "running"},
                        {"since", 999952},
                        {"container", "payload-0"},
                        {"image", "reg.example/python:3.12"},
                        {"digest", "sha256:abc"},
                        {"how", "switched"},
                        {"bind_s", 2.5}});
  CHECK(pods[2]["state"] == "unmatched");
  CHECK(pods[3]["state"] == "pulling");
  CHECK(pods[3]["since"] == 999952);
}

TEST_CASE("overview: as a table, the worst first, plain and as wide as it comes") {
  auto report = some();
  report["decisions"] = {
      {{"verdict", "submit"}, {"steps", {{{"text", "x"}}}}},
      {{"verdict", "stopped"}, {"image", "pilot:1"}, {"steps", {{{"text", "breaker open for 60 s"}}}}}};
  CHECK(
      overview(report, {}, k_now) ==
      "5 pods: 2 claimed, 1 pull error, 1 pulling, 1 unmatched; 2 jobs: 1 pulling, 1 running; bound in 2.5 s "
      "(p95)\n"
      "breaker open for pilot:1: breaker open for 60 s\n"
      "POD  NODE    CONTAINER  JOB   OWNER  STATE             IMAGE                    BIND            WAITS "
      "FOR\n"
      "a    node-a  payload-2  -     -      BROKEN            -                        -               -\n"
      "e    node-e  -          -     -      PULL ERROR 5 min  -                        -               -\n"
      "b    node-b  -          13.0  alice  PULLING 5 s       reg.example/python:3.12  -               its "
      "image, pulled beside the pod\n"
      "d    node-d  -          -     -      PULLING 48 s      -                        -               -\n"
      "a    node-a  payload-0  12.0  alice  RUNNING 48 s      reg.example/python:3.12  switched 2.5 s  -\n"
      "c    node-c  -          -     -      UNMATCHED         -                        -               -\n");
  CHECK(overview({{"pods", Json::array()}}, {}, k_now) == "0 pods; 0 jobs\n");
}

TEST_CASE("overview: a pod that waits has the words of who makes it wait") {
  auto waits = pod("a", PodState::unschedulable);
  waits.message = "0/3 nodes are available";
  const Json report = {{"pods", pods_json({waits, pod("b")}, {{"b", false}})}};
  CHECK(report["pods"][0]["waits_for"] == waits.message);
  CHECK(!report["pods"][1].contains("waits_for"));
  CHECK(has(overview(report, {}, k_now), "  0/3 nodes are available\n"));
}

TEST_CASE("overview: a pod that is to end says so, with its job, and without") {
  auto going = pod("a", PodState::unknown), stuck = pod("b", PodState::unknown);
  going.message = "asked to end";
  stuck.message = "kept by the finalizer x";
  const Json report = {{"pods", pods_json({going, stuck}, {{"a", false}, job("a", "12.0", "running")})}};
  const auto text = overview(report, {}, k_now);
  CHECK(has(text, "12.0  alice  RUNNING 48 s"));
  CHECK(has(text, "  asked to end\n"));
  CHECK(has(text, "  kept by the finalizer x\n"));
}

TEST_CASE("overview: it fits the terminal") {
  for (const std::size_t width : {60, 80, 200}) {
    CAPTURE(width);
    const auto text = overview({{"pods", some()["pods"]}}, {width, 0, false}, k_now);
    const auto lines = lines_of(text);
    for (std::size_t i = 1; i < lines.size(); ++i) CHECK(lines[i].size() <= width);
    for (const auto* column : {"POD", "JOB", "OWNER", "STATE", "IMAGE"}) CHECK(has(lines[1], column));
    CHECK(has(text, "12.0"));
    CHECK(has(lines[1], "BIND") == (width > 80));
    CHECK(has(text, "PULLING 48 s"));
  }
  // As high, too: the worst is shown.
  const auto text = overview(some(), {200, 5, false}, k_now);
  CHECK(lines_of(text).size() == 5);
  CHECK(has(text, "BROKEN"));
  CHECK(has(text, "... and 4 more\n"));
  CHECK(has(overview(some(), {200, 1, false}, k_now), "... and 5 more\n"));
  // Color only where it is asked for, outside of what is measured.
  CHECK_FALSE(has(text, "\x1b"));
  const auto colored = overview(some(), {80, 0, true}, k_now);
  CHECK(has(colored, "\x1b[31ma "));
  CHECK(has(colored, "\x1b[33md "));
  CHECK(std::count(colored.begin(), colored.end(), '\x1b') == 2 * 5);
}

TEST_CASE("overview: hostile names are harmless text, and what is no report is none") {
  const std::string hostile =
      "x\x1b[2J\r\n\x9b"
      "31m\u202e\"<b>";
  auto slot = job(hostile, hostile, hostile);
  slot.owner = slot.job.image = slot.job.container = slot.job.how = slot.job.waits_for = hostile;
  slot.containers = hostile + "=" + hostile;
  const Json report = {
      {"pods", pods_json({pod(hostile)}, {slot})},
      {"decisions", {{{"verdict", "stopped"}, {"image", hostile}, {"steps", {{{"text", hostile}}}}}}}};
  for (const bool color : {false, true}) {
    auto text = overview(report, {80, 0, color}, k_now);
    if (!color) CHECK(widest(overview({{"pods", report["pods"]}}, {400, 0, false}, k_now)) <= 400);
    CHECK(lines_of(text).size() == 4);
    for (const char c : text) {
      const bool ours = c == '\n' || (color && c == '\x1b');
      CHECK((ours || (c >= 0x20 && c < 0x7f)));
    }
  }
  CHECK(has(overview(report, {}, k_now), R"(x\x1b[2J\x0d\x0a\x9b31m\xe2\x80\xae"<b>)"));
  for (const auto* text :
       {"{}", R"({"pods": 5})", R"({"pods": [5, {}, {"jobs": 7}, {"jobs": [7, {"bind_s": "x"}]}]})"})
    CHECK_NOTHROW(overview(Json::parse(text), {80, 20, true}, k_now));
}

TEST_CASE("overview: 5,000 pods and their jobs are quickly told") {
  std::vector<Pod> pods;
  std::vector<Slot> slots;
  for (int i = 0; i < 5000; ++i) {
    const auto name = fmt::format("glidepod-pilot-1cpu-4gb-{:05d}", i);
    pods.push_back(pod(name));
    for (int j = 0; j < 2; ++j) slots.push_back(job(name, fmt::format("{}.{}", i, j), "running"));
  }
  const auto began = std::clock();  // processor time, which does not grow with what runs beside it
  const Json report = {{"pods", pods_json(pods, slots)}};
  const auto text = overview(report, {120, 0, true}, k_now);
  const double took = static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
  MESSAGE("in ", took, " s");
#ifdef __SANITIZE_ADDRESS__
  constexpr double k_most = 15;
#else
  constexpr double k_most = 3;
#endif
  CHECK(took < k_most);  // without optimization
  CHECK(std::count(text.begin(), text.end(), '\n') == 10002);
}

TEST_CASE("overview: 50,000 pods take no more of a status than it has, those in trouble first, all counted") {
  std::vector<Pod> pods;
  std::vector<Slot> slots;
  for (int i = 0; i < 50'000; ++i) {
    const auto name = fmt::format("glidepod-pilot-1cpu-4gb-{:05d}", i);
    pods.push_back(pod(name));
    slots.push_back(job(name, fmt::format("{}.0", i), i % 1000 == 999 ? "broken" : "running"));
  }
  pods.push_back(pod("no-image", PodState::pull_error));
  pods.push_back(pod("ended", PodState::succeeded));
  constexpr std::size_t k_most = 1'000'000;
  Json left_out;
  Json report = {{"pods", pods_json(pods, slots, {}, k_most, &left_out)}};
  const auto size = report.dump().size();
  CHECK(size <= k_most + 100);
  CHECK(size > k_most * 9 / 10);
  // The 51 in trouble are the first.
  for (std::size_t i = 0; i < 51; ++i)
    CHECK((report["pods"][i]["state"] == "pull error" || report["pods"][i]["jobs"][0]["state"] == "broken"));
  const auto shown = report["pods"].size();
  CHECK(left_out == Json{{"pods", {{"claimed", 50'001 - shown}}}, {"jobs", {{"running", 50'001 - shown}}}});
  report["left_out"] = left_out;
  const auto text = overview(report, {120, 10, false}, k_now);
  CHECK(has(text, "50001 pods: 50000 claimed, 1 pull error; 50000 jobs: 50 broken, 49950 running"));
  CHECK(has(text, fmt::format("... and {} pods that a status has no room for", 50'001 - shown)));
}

TEST_CASE("overview: where all fit they are in their order, and nothing is left out") {
  Json left_out;
  const auto pods = pods_json({pod("a"), pod("b", PodState::pull_error)}, {}, {}, 1000, &left_out);
  CHECK(pods[0]["pod"] == "a");
  CHECK(left_out.is_null());
}
