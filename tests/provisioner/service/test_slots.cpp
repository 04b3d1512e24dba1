#include "provisioner/service/slots.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/base/file.hpp"
#include "lib/condor/ad_stream.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;
using Json = nlohmann::json;

namespace {

// A pilot's own slot with a job of two CPUs.
const Json k_own = {{"K8SPodName", "p"},
                    {"AuthenticatedIdentity", "pilot@pool"},
                    {"State", "Unclaimed"},
                    {"PartitionableSlot", true},
                    {"NumDynamicSlots", 1},
                    {"GlidepodPayloadContainers", 4},
                    {"LastHeardFrom", 1'000'000},
                    {"Cpus", 6},
                    {"Memory", 14336},
                    {"Disk", 7'990'000}};

Slot read(const Json& ad) {
  const auto slot =
      read_slot(condor::ad_from_json(ad.dump()).value(), "K8SPodName", Pattern::compile(".*@pool").value());
  REQUIRE(slot);
  return *slot;
}

Slot changed(const char* name, const Json& value) {
  auto ad = k_own;
  ad[name] = value;
  return read(ad);
}

}  // namespace

TEST_CASE("slots: the pod's own slot says what it has left, for how many jobs and until when") {
  const auto slot = read(k_own);
  REQUIRE(slot.room);
  CHECK(slot.room->cpu_milli == 6000);
  CHECK(slot.room->memory_bytes == std::int64_t{14336} << 20);
  CHECK(slot.room->disk_bytes == std::int64_t{7'990'000} << 10);
  CHECK(slot.room->gpus == 0);
  CHECK(slot.room->pods == 3);
  CHECK(slot.room_until == Time(std::chrono::seconds(1'000'300)));
  CHECK(changed("NumDynamicSlots", nullptr).room->pods == 4);
  CHECK(changed("GPUs", 2).room->gpus == 2);
  CHECK(changed("GlidepodTakesJobsUntil", "/Expr(900000 + 100010)/").room_until ==
        Time(std::chrono::seconds(1'000'010)));
}

TEST_CASE("slots: whoever takes no more jobs, or of whom that is not known, has nothing left") {
  CHECK_FALSE(changed("PartitionableSlot", nullptr).room);
  CHECK_FALSE(changed("State", "Drained").room);
  CHECK_FALSE(changed("GlidepodTrouble", "five failures").room);
  CHECK_FALSE(changed("GlidepodPayloadContainers", nullptr).room);
  CHECK_FALSE(changed("NumDynamicSlots", 4).room);
  CHECK_FALSE(changed("NumDynamicSlots", 7).room);
  for (const auto* name : {"Cpus", "Memory", "Disk", "LastHeardFrom"})
    for (const Json& bad : {Json(nullptr), Json("x"), Json(-1), Json(std::int64_t{1} << 60)})
      CHECK_FALSE(changed(name, bad).room);
}

TEST_CASE("slots: what is read is asked for, and pilots say it") {
  const auto asked = slot_attributes("K8SPodName");
  for (const auto& entry : k_own.items()) CHECK(std::ranges::find(asked, entry.key()) != asked.end());
  CHECK(std::ranges::find(asked, "GlidepodTakesJobsUntil") != asked.end());
  const auto start = read_file(GLIDEPOD_PILOT_CONFIG "/60-start.config").value();
  CHECK(start.find("STARTD_ATTRS = $(STARTD_ATTRS) GlidepodTakesJobsUntil") != std::string::npos);
}
