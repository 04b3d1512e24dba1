#include "provisioner/simulate/simulate.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "lib/base/file.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;

namespace {

Scenario scenario(std::string_view text) {
  Ini ini;
  REQUIRE(ini.read(text, "f").ok());
  auto parsed = parse_scenario(ini);
  if (!parsed) FAIL(parsed.error().message());
  return std::move(parsed).value();
}

std::string failure(std::string_view text) {
  Ini ini;
  REQUIRE(ini.read(text, "f").ok());
  const auto parsed = parse_scenario(ini);
  return parsed ? "" : parsed.error().message();
}

std::int64_t live(const Sample& s) {
  return s.waiting + s.unmatched + s.claimed + s.broken;
}

}  // namespace

TEST_CASE("simulate: a burst is served, then the pods end by themselves") {
  const auto samples = simulate(scenario("[scenario]\nlength = 12h\n[jobs a]\nburst = 400\nruntime = 10m\n"));
  CHECK(samples.back().done == 400);
  CHECK(samples.back().idle == 0);
  CHECK(live(samples.back()) == 0);
  CHECK(samples.back().submitted >= 20);
  CHECK(samples.back().submitted <= 400);
}

TEST_CASE("simulate: the same scenario gives the same day, another seed another one") {
  const auto* text = "[jobs a]\nper_hour = 100\n[model]\nsilent = 0.1\n";
  const auto sums = [](const std::vector<Sample>& s) {
    return std::pair(s.back().submitted, s.back().used_hours);
  };
  CHECK(sums(simulate(scenario(text))) == sums(simulate(scenario(text))));
  CHECK(sums(simulate(scenario(text))) != sums(simulate(scenario(std::string(text) + "seed = 2\n"))));
}

TEST_CASE("simulate: steady work is met by a steady number of pods") {
  const auto samples =
      simulate(scenario("[jobs a]\nper_hour = 400\nruntime = 30m\n[scenario]\nlength = 2d\n"));
  std::int64_t least = 1'000'000, most = 0;
  for (const auto& s : samples)
    if (s.at > Seconds(86400)) {
      least = std::min(least, live(s));
      most = std::max(most, live(s));
    }
  // 200 jobs run at a time.
  CHECK(least > 180);
  CHECK(most < 320);
}

TEST_CASE("simulate: while the pool cannot be asked no pod is made") {
  const auto samples = simulate(
      scenario("[jobs a]\nper_hour = 1000\nruntime = 2h\n[model]\nblind_from = 2h\nblind_until = 4h\n"));
  const auto submitted = [&](int hour) {
    return std::find_if(samples.begin(), samples.end(),
                        [&](const Sample& s) { return s.at >= Seconds(hour * 3600); })
        ->submitted;
  };
  CHECK(submitted(1) > 0);
  CHECK(submitted(4) - submitted(2) <= 20);  // what the last cycle before it had decided
  CHECK(submitted(5) > submitted(4) + 100);
}

TEST_CASE("simulate: when every pull fails the breaker keeps the failures few, and work goes on afterwards") {
  const auto* text =
      "[jobs a]\nburst = 2000\nper_hour = 100\nruntime = 30m\n"
      "[model]\npulls_fail_from = 0\npulls_fail_until = 6h\n";
  const auto samples = simulate(scenario(text));
  const auto at_six =
      std::find_if(samples.begin(), samples.end(), [](const Sample& s) { return s.at >= Seconds(6 * 3600); });
  CHECK(at_six->submitted <= 40);
  CHECK(samples.back().done > 2000);
}

TEST_CASE("simulate: pilots that never register are stopped as well") {
  const auto samples = simulate(scenario("[jobs a]\nburst = 2000\n[model]\nsilent = 1\n"));
  CHECK(samples.back().submitted < 100);
  CHECK(samples.back().done == 0);
}

TEST_CASE(
    "simulate: jobs that no node holds cost the others an hour at most, and nothing once they have left") {
  // 3,000 of them had filled max_idle, and after they had left nobody else got a pod.
  auto s = scenario(
      "[scenario]\nlength = 6h\n[policy]\nmax_idle = 20\n"
      "[jobs huge]\ncpus = 64\nburst = 3000\nfits = no\nleave = 3h\n"
      "[jobs small]\nstart = 10m\nburst = 200\nruntime = 5m\n");
  std::int64_t removed = 0, removed_late = 0, most_live = 0;
  Seconds done{0};
  const auto samples = simulate(s, [&](const Demand&, const Supply& supply, const Plan& plan) {
    const auto count = static_cast<std::int64_t>(plan.removals.size());
    removed += count;
    for (const auto& [group, pods] : supply.groups)
      if (group.cpus == 64) most_live = std::max(most_live, pods.live());
    removed_late += removed > 19 ? count : 0;
  });
  for (const auto& sample : samples)
    if (done == Seconds(0) && sample.done == 200) done = sample.at;
  CHECK(done > Seconds(0));
  CHECK(done < Seconds(3 * 3600));
  CHECK(most_live == 20);
  // No storm: all but one once, the last one after the jobs.
  CHECK(removed == 20);
  CHECK(removed_late == 1);
  CHECK(live(samples.back()) == 0);
  // As it was.
  s.policy.settings.take_back_after = s.policy.settings.unschedulable_limit = Seconds(0);
  CHECK(simulate(s).back().done == 0);
}

TEST_CASE("simulate: one section is many groups, of several sizes and owners") {
  const auto all =
      scenario("[jobs a]\ngroups = 5\ncpus = 1,4\nmemory = 8000\nmemory_step = 100\nowners = 2\nburst = 3\n");
  REQUIRE(all.streams.size() == 5);
  CHECK(all.streams[3].group.cpus == 4);
  CHECK(all.streams[4].group.cpus == 1);
  CHECK(all.streams[4].group.memory_mb == 8400);
  CHECK(all.streams[3].owner == "a-1");
  CHECK(all.streams[4].owner == "a-0");
  CHECK(simulate(all).back().done == 15);
}

TEST_CASE("simulate: nodes hold what they have room for") {
  const auto most = [](const std::string& node, const std::string& jobs) {
    std::int64_t result = 0;
    for (const auto& s : simulate(scenario(
             fmt::format("[scenario]\nlength = 4h\n[nodes n]\n{}[jobs a]\nburst = 400\n{}", node, jobs))))
      result = std::max(result, s.claimed);
    return result;
  };
  CHECK(most("count = 2\ncpus = 8\n", "cpus = 3\n") == 4);
  CHECK(most("count = 2\nmemory = 10000\n", "memory = 5000\n") == 4);
  CHECK(most("count = 2\npods = 5\n", "") == 10);
  CHECK(most("", "") == 110);
  CHECK(most("cpus = 2\n", "cpus = 3\n") == 0);
}

TEST_CASE("simulate: a node that goes down takes its pods along, and their jobs run elsewhere") {
  const auto text = [](const std::string& trouble) {
    return "[scenario]\nlength = 2d\n[nodes n]\ncount = 4\ncpus = 20\n" + trouble +
           "[jobs a]\nburst = 1000\nruntime = 1h\n";
  };
  const auto calm = simulate(scenario(text("")));
  const auto storm = simulate(scenario(text("down_every = 3h\n")));
  CHECK(calm.back().done == 1000);
  CHECK(storm.back().done == 1000);
  CHECK(storm.back().submitted > calm.back().submitted + 20);
}

TEST_CASE("simulate: nodes that break pilots are avoided, and tried again") {
  auto s = scenario(
      "[scenario]\nlength = 12h\n[model]\nlifetime = 1h\n[nodes good]\ncount = 3\ncpus = 40\n"
      "[nodes bad]\ncpus = 40\nbreaks_every = 20m\nbreaks_for = 4h\n[jobs a]\nper_hour = 200\nruntime = "
      "20m\n");
  std::set<std::string> avoided;
  std::int64_t cycles = 0;
  const auto with = simulate(s, [&](const Demand&, const Supply&, const Plan& plan) {
    avoided.insert(plan.avoid.begin(), plan.avoid.end());
    cycles += plan.avoid.empty() ? 0 : 1;
  });
  CHECK(avoided == std::set<std::string>{"bad-0"});
  CHECK(cycles > 50);
  s.policy.settings.node_failures = 0;
  const auto without = simulate(s);
  CHECK(with.back().done > 2200);
  CHECK(with.back().done > without.back().done);
}

TEST_CASE("simulate: a second burst is answered as the first one") {
  const auto samples = simulate(scenario(
      "[scenario]\nlength = 10h\n[model]\nroom = 30\n[jobs a]\nburst = 400\nruntime = 10m\nleave = 1h\n"
      "[jobs b]\nstart = 5h\nburst = 400\nruntime = 10m\n"));
  const auto before =
      std::find_if(samples.begin(), samples.end(), [](const Sample& s) { return s.at >= Seconds(5 * 3600); });
  CHECK(live(*(before - 1)) == 0);
  CHECK(samples.back().done - before->done == 400);
  CHECK(live(samples.back()) == 0);
}

TEST_CASE("simulate: the example serves all its jobs in spite of its troubles") {
  const auto text = read_file(GLIDEPOD_SCENARIOS "/day.conf");
  REQUIRE(text.ok());
  const auto samples = simulate(scenario(text.value()));
  CHECK(samples.back().done == 7900);
  CHECK(live(samples.back()) == 0);
}

TEST_CASE("simulate: a scenario file that is wrong says where") {
  CHECK(failure("[model]\npull = 1m\n") == "there is no section [jobs NAME]: nothing would happen");
  CHECK(failure("[jobs a]\ncolour = red\n") == "[jobs a]: unknown key 'colour'");
  CHECK(failure("[jobs a]\nruntime = soon\n") ==
        "[jobs a] runtime = 'soon': must be a time such as 90s, 15m, 2h or 1d");
  CHECK(failure("[model]\nsilent = 2\n[jobs a]\n") == "[model] silent = '2': must be a number from 0 to 1");
  CHECK(failure("[policy]\nramp_upp = 1\n[jobs a]\n") ==
        "[policy]: unknown key 'ramp_upp' in [glidepod] is ignored");
  CHECK(failure("[job]\n").starts_with("unknown section [job]"));
  CHECK(failure("[jobs a]\ncpus = 1,x\n") == "[jobs a] cpus = '1,x': must be a whole number");
  CHECK(failure("[jobs a]\ngroups = 10001\n") == "[jobs a]: more than 10,000 groups");
  CHECK(failure("[model]\nroom = 5\n[nodes n]\n[jobs a]\n") == "either room or nodes");
  CHECK(failure("[nodes n]\ncount = 100001\n[jobs a]\n") == "more than 100,000 nodes");
  CHECK(failure("[nodes n]\n[place p]\n[jobs a]\n") == "either places or nodes");
}

TEST_CASE("simulate: of two places one is lost for an hour, which moves nothing that runs") {
  Ini ini;
  REQUIRE(ini.read(read_file(GLIDEPOD_SCENARIOS "/places.conf").value(), "places.conf").ok());
  const auto places = parse_scenario(ini).value();
  struct Seen {
    Seconds at;
    bool lost;
    std::int64_t east, west, unclaimed, law, submit_east, submit_west;
    std::size_t removals;
  };
  std::vector<Seen> seen;
  Seconds at{0};
  const auto live = [](const PlaceSupply& place) {
    std::int64_t sum = 0;
    for (const auto& [group, pods] : place.groups) sum += pods.live();
    return sum;
  };
  const auto samples = simulate(places, [&](const Demand&, const Supply& supply, const Plan& plan) {
    const auto &east = supply.places.at("east"), &west = supply.places.at("west");
    Seen s{at, !east.unseen.empty(), live(east), live(west), 0, 0, 0, 0, 0};
    for (const auto& d : plan.decisions) {
      s.unclaimed += d.supply.unclaimed() + d.submit;
      s.law += std::max(pressure(d.counted, places.policy.max_pods_per_cluster), d.supply.unclaimed());
      s.submit_east += d.places[0].submit;
      s.submit_west += d.places[1].submit;
    }
    // Those that ended are what is removed besides, after a day or above finished_kept.
    for (const auto& removal : plan.removals) s.removals += removal.reason.find("kept") == std::string::npos;
    seen.push_back(s);
    at += places.cycle;
  });
  CHECK(samples.back().done >= 3700);
  std::int64_t lost = 0, west_in_outage = 0;
  for (const auto& s : seen) {
    CAPTURE(s.at.count());
    CHECK(s.unclaimed <= s.law);
    CHECK(s.east + s.submit_east <= 200);
    CHECK(s.west + s.submit_west <= 150);
    CHECK(s.lost == (s.at >= Seconds(6 * 3600) && s.at < Seconds(7 * 3600)));
    if (!s.lost) continue;
    ++lost;
    CHECK(s.submit_east == 0);
    CHECK(s.removals == 0);
    west_in_outage += s.submit_west;
  }
  CHECK(lost == 30);
  CHECK(west_in_outage > 0);
  // Two to one, while neither is full.
  const auto before = std::ranges::find(seen, Seconds(11 * 1800), &Seen::at);
  CHECK(before->east > before->west * 3 / 2);
  CHECK(before->east < before->west * 5 / 2);
}

// The figures are in docs/simulator.md.
TEST_CASE("simulate: jobs that require what no pilot has cost nothing, where they cost pods before") {
  const auto text = read_file(GLIDEPOD_SCENARIOS "/ospool.conf").value();
  const auto day = [](std::string conf, std::string_view replaced, std::string_view by) {
    const auto at = conf.find(replaced);
    REQUIRE(at != std::string::npos);
    return simulate(scenario(conf.replace(at, replaced.size(), by))).back();
  };
  const auto now = simulate(scenario(text)).back();
  const auto before = day(text, "length = 24h\n", "length = 24h\npilot_attributes = *\n");
  const auto without = day(text, "burst = 300\nreq", "burst = 0\nreq");
  // To the pod as if they were not there, and they are all there at the end.
  CHECK(now.submitted == without.submitted);
  CHECK(now.wasted_pods == without.wasted_pods);
  CHECK(now.idle_hours == without.idle_hours);
  CHECK(now.done == without.done);
  CHECK(now.idle == 300);
  CHECK(before.idle == 300);
  CHECK(before.done == now.done);
  CHECK(before.submitted > now.submitted + 100);
  CHECK(before.wasted_pods > now.wasted_pods + 100);
  // Where pilots have it, these jobs run.
  const auto had = day(text, "length = 24h\n", "length = 24h\npilot_attributes = OSGVO_OS_STRING\n");
  CHECK(had.idle == 0);
  CHECK(had.done == now.done + 300);
}
