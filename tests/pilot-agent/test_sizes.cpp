#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "pilot-agent/core/sizes.hpp"

using namespace glidepod::agent;
using glidepod::kube::SizeChange;

namespace {

constexpr std::int64_t k_gib = std::int64_t{1} << 30;

Amount amount(std::int64_t cpus, std::int64_t gib) {
  return {cpus * 1000, gib * k_gib};
}
// A pod of four CPUs and 8 GiB, each container of which may have all, as provisioners make them.
std::vector<Sizeable> containers(int count) {
  std::vector<Sizeable> all;
  all.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i)
    all.push_back({"payload-" + std::to_string(i), {{4000 / count, 8 * k_gib / count}, amount(4, 8)}, true});
  return all;
}
Size room(int count) {
  return {amount(4, 8), {std::int64_t{4000} * count, 8 * k_gib * count}};
}
void apply(std::vector<Sizeable>& all, const std::vector<SizeChange>& changes) {
  for (const SizeChange& change : changes)
    std::ranges::find(all, change.container, &Sizeable::name)->now = change.size;
}
Size of(const std::vector<Sizeable>& all, int i) {
  return all.at(static_cast<std::size_t>(i)).now;
}
Size sum(const std::vector<Sizeable>& all) {
  Size result;
  for (const Sizeable& one : all) {
    result.request = {result.request.cpu + one.now.request.cpu,
                      result.request.memory + one.now.request.memory};
    result.limit = {result.limit.cpu + one.now.limit.cpu, result.limit.memory + one.now.limit.memory};
  }
  return result;
}
bool within(const Size& a, const Size& b) {
  return a.request.cpu <= b.request.cpu && a.request.memory <= b.request.memory &&
         a.limit.cpu <= b.limit.cpu && a.limit.memory <= b.limit.memory;
}

}  // namespace

TEST_CASE("sizes: a job's container gets its slot's, and the idle ones share what is left") {
  auto all = containers(4);
  const auto plan = plan_sizes(room(4), all, "payload-0", amount(1, 2));
  REQUIRE(plan);
  CHECK(plan->grow.empty());
  apply(all, plan->shrink);
  for (int i = 0; i < 4; ++i) CHECK(of(all, i) == Size{amount(1, 2), amount(1, 2)});
  // The next job of this size finds all as it wants it.
  all[0].idle = false;
  CHECK(plan_sizes(room(4), all, "payload-1", amount(1, 2))->empty());
}

TEST_CASE("sizes: a job that has all leaves the idle ones what glue needs") {
  auto all = containers(2);
  const auto plan = plan_sizes(room(2), all, "payload-0", amount(4, 8));
  REQUIRE(plan);
  CHECK(plan->shrink == std::vector<SizeChange>{{"payload-1", {{}, k_idle_floor}}});
  CHECK(plan->grow == std::vector<SizeChange>{{"payload-0", {amount(4, 8), amount(4, 8)}}});
}

TEST_CASE("sizes: of what the pod asked for, a job gets what there is") {
  // A provisioner's use_large_limit: three quarters of what jobs may use.
  Size small = room(1);
  small.request.cpu = 3000;
  auto all = containers(1);
  all[0].now.request.cpu = 3000;
  const auto plan = plan_sizes(small, all, "payload-0", amount(4, 8));
  CHECK(plan->empty());
}

TEST_CASE("sizes: who has a job stays as it is") {
  auto all = containers(3);
  all[1].idle = false;
  all[1].now = {amount(2, 4), amount(2, 4)};
  const auto plan = plan_sizes(room(3), all, "payload-0", amount(1, 1));
  REQUIRE(plan);
  apply(all, plan->shrink);
  apply(all, plan->grow);
  CHECK(of(all, 1) == Size{amount(2, 4), amount(2, 4)});
  CHECK(of(all, 2) == Size{amount(1, 3), amount(1, 3)});
}

TEST_CASE("sizes: in a pod whose limits are its requests they stay so, or nothing is done") {
  std::vector<Sizeable> all = {{"a", {amount(2, 4), amount(2, 4)}, true},
                               {"b", {amount(2, 4), amount(2, 4)}, true}};
  const Size whole{amount(4, 8), amount(4, 8)};
  CHECK_FALSE(plan_sizes(whole, all, "a", amount(4, 8)));
  const auto plan = plan_sizes(whole, all, "a", amount(3, 7));
  REQUIRE(plan);
  CHECK(plan->shrink == std::vector<SizeChange>{{"b", {amount(1, 1), amount(1, 1)}}});
  CHECK(plan->grow == std::vector<SizeChange>{{"a", {amount(3, 7), amount(3, 7)}}});
}

TEST_CASE("sizes: no limit is lowered below the memory in use") {
  auto all = containers(2);
  all[0].used_kib = 1 << 20;
  all[1].used_kib = 3 << 20;
  const auto plan = plan_sizes(room(2), all, "payload-0", amount(3, 7));
  REQUIRE(plan);
  apply(all, plan->shrink);
  CHECK(of(all, 1).limit.memory == 3 * k_gib + (k_memory_margin_kib << 10));
  // The job's own container has more than the slot: it stays as it is.
  all[0].now.limit = amount(4, 8);
  all[0].used_kib = 8 << 20;
  CHECK_FALSE(plan_sizes(room(2), all, "payload-0", amount(3, 7)));
}

TEST_CASE("sizes: a container without a limit gets one") {
  std::vector<Sizeable> all = {{"a", {amount(1, 1), {}}, true}};
  const auto plan = plan_sizes({amount(1, 1), amount(4, 8)}, all, "a", amount(1, 1));
  CHECK(plan->shrink == std::vector<SizeChange>{{"a", {amount(1, 1), amount(1, 1)}}});
}

TEST_CASE("sizes: whatever comes, never more than the pod at any moment, and never less than a job's slot") {
  std::mt19937 random(7);
  const auto between = [&random](int low, int high) {
    return std::uniform_int_distribution<>(low, high)(random);
  };
  int plans = 0, grown = 0;
  for (int pod = 0; pod < 300; ++pod) {
    const int count = between(1, 5);
    auto all = containers(count);
    const Size most = room(count);
    std::vector<Amount> slots(static_cast<std::size_t>(count));
    for (int step = 0; step < 40; ++step) {
      const auto i = static_cast<std::size_t>(between(0, count - 1));
      if (!all[i].idle) {  // its job ends
        all[i].idle = true;
        slots[i] = {};
        continue;
      }
      for (Sizeable& one : all)
        one.used_kib = one.idle && between(0, 4) == 0
                           ? std::min<std::int64_t>(between(1000, 200'000), one.now.limit.memory >> 10)
                           : 0;
      Amount free = most.request;
      for (const Amount& slot : slots) free = {free.cpu - slot.cpu, free.memory - slot.memory};
      const Amount slot{between(1, 10) * free.cpu / 10, between(1, 10) * free.memory / 10};
      if (slot.cpu == 0 || slot.memory < (256 << 20)) continue;
      const auto plan = plan_sizes(most, all, all[i].name, slot);
      REQUIRE(plan);
      ++plans;
      grown += plan->grow.empty() ? 0 : 1;
      // In any order within each of the two.
      for (auto changes : {plan->shrink, plan->grow}) {
        std::ranges::shuffle(changes, random);
        for (const SizeChange& change : changes) {
          const auto& one = *std::ranges::find(all, change.container, &Sizeable::name);
          CHECK((one.idle || change.container == all[i].name));
          CHECK((one.used_kib == 0 || change.size.limit.memory >> 10 >= one.used_kib));
          CHECK(change.size.request.cpu <= change.size.limit.cpu);
          CHECK(change.size.request.memory <= change.size.limit.memory);
          apply(all, {change});
          CHECK(within(sum(all), most));
        }
      }
      all[i].idle = false;
      slots[i] = slot;
      for (std::size_t j = 0; j < slots.size(); ++j)
        if (slots[j] != Amount{}) CHECK(all[j].now == Size{slots[j], slots[j]});
    }
  }
  CHECK(plans > 1000);
  CHECK(grown > 100);
}

TEST_CASE("sizes: what is in use stands in the way of a lower limit, and of nothing else") {
  constexpr std::int64_t k_kib = 1024;
  const auto own = [](std::int64_t limit, std::int64_t used_kib, std::int64_t slot) {
    std::vector<Sizeable> all = {{"a", {amount(1, 1), {1000, limit}}, true, used_kib}};
    return plan_sizes({amount(4, 8), amount(4, 8)}, all, "a", {1000, slot}).has_value();
  };
  CHECK(own(8 * k_gib, 0, k_kib * k_kib));  // not known
  CHECK_FALSE(own(0, 2 * k_kib * k_kib, k_gib));
  CHECK(own(k_gib, k_kib * k_kib, k_gib));  // nothing is lowered
  CHECK(own(8 * k_gib, k_kib * k_kib - k_memory_margin_kib, k_gib));
  CHECK_FALSE(own(8 * k_gib, k_kib * k_kib - k_memory_margin_kib + 1, k_gib));
  const auto other = [](std::int64_t limit) {
    std::vector<Sizeable> all = {{"a", {amount(1, 1), amount(1, 1)}, true, 1000},
                                 {"b", {amount(1, 1), {1000, limit}}, true, 1 << 20}};
    const auto plan = plan_sizes({amount(1, 1), amount(8, 8)}, all, "a", amount(1, 1));
    REQUIRE(plan);
    apply(all, plan->shrink);
    apply(all, plan->grow);
    return of(all, 1).limit.memory;
  };
  CHECK(other(k_gib) == k_gib);  // it has all of it in use
  CHECK(other(0) == k_gib + (k_memory_margin_kib << 10));
}
