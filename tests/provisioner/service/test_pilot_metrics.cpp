#include "provisioner/service/pilot_metrics.hpp"

#include <doctest/doctest.h>

#include "lib/base/text.hpp"
#include "lib/condor/ad_stream.hpp"
#include "pilot-agent/core/binds.hpp"
#include "provisioner/service/slots.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;

namespace {

struct Scene {
  PilotMetrics metrics;
  std::int64_t at = 1000;

  // A minute later, each pod's own slot says so many warm binds.
  void look(const std::vector<std::pair<std::string, std::uint64_t>>& warm, bool ended = false) {
    Observation seen;
    seen.at = Time(Seconds(at += 60));
    for (const auto& [name, count] : warm) {
      Pod pod;
      pod.name = name;
      pod.state = ended ? PodState::succeeded : PodState::unregistered;
      seen.pods.push_back(pod);
      Slot slot{name};
      slot.binds.emplace();
      slot.binds->counts[0] = count;
      slot.binds->within[3] = count;
      slot.binds->seconds = static_cast<double>(count) * 1.5;
      seen.slots.push_back(slot);
      // A dynamic slot may have an old copy.
      slot.binds->counts[0] /= 2;
      seen.slots.push_back(slot);
    }
    seen.supply.groups[{}].states = {{PodState::claimed, 3}, {PodState::failed, 5}};
    metrics.saw(seen);
  }
  bool has(const std::string& line) const {
    for (const auto& other : split(metrics.text(), '\n'))
      if (other == "glidepod_" + line) return true;
    MESSAGE(metrics.text());
    return false;
  }
  bool warm(int count) const {
    return has(fmt::format("binds_total{{how=\"warm\",result=\"bound\"}} {}", count));
  }
};

std::optional<BindCounts> read(const std::string& attributes) {
  const auto ad = condor::ad_from_json(R"({"Pod": "p", "AuthenticatedIdentity": "x", )" + attributes + "}");
  const auto slot = read_slot(ad.value(), "Pod", Pattern::compile(".*").value());
  return slot.value().binds.copy();
}

}  // namespace

TEST_CASE("pilot metrics: what pilots counted since the last look") {
  Scene scene;
  scene.look({{"a", 10}});
  CHECK(scene.warm(0));  // another instance may have counted these
  scene.look({{"a", 14}, {"new", 3}});
  CHECK(scene.warm(7));
  CHECK(scene.has("bind_duration_seconds_bucket{le=\"1\"} 0"));
  CHECK(scene.has("bind_duration_seconds_bucket{le=\"2\"} 7"));
  CHECK(scene.has("bind_duration_seconds_bucket{le=\"+Inf\"} 7"));
  CHECK(scene.has("bind_duration_seconds_sum 10.5"));
  CHECK(scene.has("bind_duration_seconds_count 7"));
  CHECK(scene.has("pod_seconds_total{state=\"claimed\"} 180"));
  CHECK(scene.metrics.text().find("state=\"failed\"") == std::string::npos);
}

TEST_CASE(
    "pilot metrics: agents that start again, ads that are missing, pods that end, a lease that was away") {
  Scene scene;
  scene.look({});
  scene.look({{"a", 5}});
  scene.look({{"a", 2}});  // started again
  CHECK(scene.warm(7));
  Observation without;
  without.at = Time(Seconds(scene.at += 60));
  without.pods.emplace_back().name = "a";
  scene.metrics.saw(without);
  scene.look({{"a", 3}});
  CHECK(scene.warm(8));
  scene.look({{"a", 9}}, true);  // its ad outlives it
  scene.look({{"a", 1}});        // another one of that name
  CHECK(scene.warm(9));
  scene.metrics.forget();
  scene.look({{"a", 100}});
  scene.look({{"a", 101}});
  CHECK(scene.warm(10));
}

TEST_CASE("pilot metrics: what an ad says, whatever it says") {
  const auto counts = read(
      R"("GlidepodBinds": "warm=3 fresh=1 switched=2 pulled=4 user=5 infrastructure=6 doubt=7",
         "GlidepodBindsWithin": "0.1=1 0.5=2 1=3 2=4 5=5 15=6 60=7 300=8", "GlidepodBindSeconds": 7.5)");
  REQUIRE(counts);
  CHECK(counts->counts == std::array<std::uint64_t, 7>{3, 1, 2, 4, 5, 6, 7});
  CHECK(counts->within == std::array<std::uint64_t, 8>{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(counts->seconds == 7.5);
  CHECK(!read(R"("State": "Unclaimed")"));
  const auto hostile = read(
      R"("GlidepodBinds": "warm=-1 fresh=x switched=99999999999999 = pulled =7 user= warmer=3 infrastructure=1=2",
         "GlidepodBindsWithin": 7, "GlidepodBindSeconds": -3.5)");
  REQUIRE(hostile);
  CHECK(hostile->counts == std::array<std::uint64_t, 7>{0, 0, 1'000'000'000, 0, 0, 0, 0});
  CHECK(hostile->seconds == 0);
}

TEST_CASE("pilot metrics: pilots and provisioner mean the same") {
  using agent::Binds;
  for (std::size_t i = 0; i < Binds::k_hows.size(); ++i) CHECK(Binds::k_hows[i] == BindCounts::k_names[i]);
  CHECK(Binds::k_hows.size() == BindCounts::k_bound);
  CHECK(Binds::k_bounds == BindCounts::k_seconds);
  Binds binds;
  binds.bound("switched", std::chrono::milliseconds(700));
  binds.bound("of no kind", std::chrono::milliseconds(700));
  CHECK(binds.by_how == std::array<std::uint64_t, 4>{0, 0, 1, 0});
  CHECK(binds.within == std::array<std::uint64_t, 8>{0, 0, 1, 1, 1, 1, 1, 1});
  CHECK(binds.took == std::chrono::milliseconds(700));
}
