#include "provisioner/offline/ads.hpp"

#include <doctest/doctest.h>

#include "lib/base/file.hpp"
#include "lib/base/text.hpp"
#include "lib/condor/ad_stream.hpp"
#include "lib/condor/job_ad.hpp"
#include "tests/provisioner/group.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;

namespace {

// As condor_status -json printed it: a pilot of this project with one CPU and one payload container, in a
// pool of HTCondor 23.9.
condor::Ad pilot() {
  const auto text = read_file(GLIDEPOD_PILOT_AD).value();
  const auto begin = text.find('{');
  auto ad = condor::ad_from_json(std::string_view(text).substr(begin, text.rfind('}') + 1 - begin));
  REQUIRE(ad.ok());
  return ad.value();
}

Group wide() {
  Group group;
  group.cpus = 4;
  group.memory_mb = 8192;
  group.labels = "zone:a";
  return group;
}

std::string line(const condor::JobAttributes& ad, std::string_view name) {
  const auto found = ad.find(name);
  return found == ad.end() ? "(none)" : std::string(found->second);
}

}  // namespace

TEST_CASE("offline ads: a pilot's ad with the sizes of the group") {
  const auto text = offline_ad(pilot(), wide(), 3, Seconds(1200));
  CHECK(text.ends_with("\n\n"));
  CHECK(text.find("\n\n") == text.size() - 2);
  const auto ad = condor::parse_attributes(text);
  for (const auto* name : {"Cpus", "TotalCpus", "TotalSlotCpus"}) CHECK(line(ad, name) == "4");
  for (const auto* name : {"Memory", "TotalMemory", "TotalSlotMemory"}) CHECK(line(ad, name) == "8192");
  for (const auto* name : {"Disk", "TotalDisk", "TotalSlotDisk"}) CHECK(line(ad, name) == "8002048");
  CHECK(line(ad, "TotalSlotGPUs") == "(none)");
  CHECK(line(ad, "Labels") == "\"zone:a\"");
  CHECK(line(ad, "Offline") == "true");
  CHECK(line(ad, "GlidepodOffline") == "true");
  CHECK(line(ad, "Unhibernate") == "false");
  CHECK(line(ad, "State") == "\"Unclaimed\"");
  CHECK(line(ad, "ClassAdLifetime") == "1200");
  CHECK(line(ad, "GlidepodOfflineGroup") == condor::quote(wide().hash()));
  CHECK(line(ad, "Rank") == "-1003");
  CHECK(line(ad, "Name").starts_with("\"offline@" + wide().hash() + "-3."));
}

TEST_CASE("offline ads: what jobs are matched by is the pilot's own") {
  const auto real = pilot();
  const auto text = offline_ad(real, wide(), 0, Seconds(1200));
  const auto ad = condor::parse_attributes(text);
  for (const auto* name : {"Arch", "OpSys", "HasSingularity", "HasContainer", "HasFileTransferPluginMethods",
                           "Requirements", "WithinResourceLimits", "SlotWeight", "K8SNamespace", "Glidepod",
                           "GlidepodPayloadContainers", "DaemonStartTime", "PartitionableSlot"}) {
    CAPTURE(name);
    CHECK(line(ad, name) == real.written(name));
    CHECK(line(ad, name) != "undefined");
  }
  // START but for the clause about ads of long ago.
  const auto start = line(ad, "Start");
  CHECK(real.written("Start").find("LastHeardFrom") != std::string::npos);
  CHECK(start.find("LastHeardFrom") == std::string::npos);
  CHECK(start.find("time()") == std::string::npos);
  for (const auto* clause : {"TARGET.JobUniverse", "TARGET.ContainerImage", "NumDynamicSlots", "RequestGPUs"})
    CHECK(start.find(clause) != std::string::npos);
}

TEST_CASE("offline ads: nothing of the one pilot's own is in them") {
  const auto text = offline_ad(pilot(), wide(), 0, Seconds(1200));
  const auto ad = condor::parse_attributes(text);
  for (const auto* name : {"AddressV1", "AuthenticatedIdentity", "LastHeardFrom", "UpdateSequenceNumber",
                           "UpdatesTotal", "GlidepodContainers", "GlidepodBinds", "K8SPhysicalHostName",
                           "DaemonShutdown", "MachineLastMatchTime", "HardwareAddress", "ChildCpus"})
    CHECK(line(ad, name) == "(none)");
  CHECK(line(ad, "MyAddress") == "\"<127.0.0.1:0>\"");
  CHECK(line(ad, "StartdIpAddr") == "\"<127.0.0.1:0>\"");
}

TEST_CASE("offline ads: of START only what is of the pilot's age is left out") {
  auto real = pilot();
  real.set_expression(
      "Start",
      "(3600 <= 0 || time() < 1795598104 + 3600) && (TARGET.Night is true || time() < TARGET.Until)");
  CHECK(line(condor::parse_attributes(offline_ad(real, wide(), 0, Seconds(1200))), "Start") ==
        "(TARGET.Night is true || time() < TARGET.Until)");
  real.set_expression("Start", "(MY.PartitionableSlot && time() - MY.LastHeardFrom > 5 * 60) isnt true");
  CHECK(line(condor::parse_attributes(offline_ad(real, wide(), 0, Seconds(1200))), "Start") == "true");
}

TEST_CASE("offline ads: a pod to be made has its life before it") {
  auto real = pilot();
  CHECK(line(condor::parse_attributes(offline_ad(real, wide(), 0, Seconds(1200))), "GlidepodEndsAt") ==
        "(none)");
  real.set("GlidepodPodLifetime", condor::Value::of(std::int64_t{20700}));
  real.set("GlidepodEndsAt", condor::Value::of(std::int64_t{1795598104}));
  const auto text = offline_ad(real, wide(), 0, Seconds(1200));
  const auto ad = condor::parse_attributes(text);
  CHECK(line(ad, "GlidepodEndsAt") == "time() + GlidepodPodLifetime - 600");
  CHECK(line(ad, "GlidepodPodLifetime") == "20700");
}

TEST_CASE("offline ads: a copy of a copy is the same") {
  const auto once = offline_ad(pilot(), wide(), 5, Seconds(1200));
  condor::Ad copy;
  for (const auto& [name, value] : condor::parse_attributes(once))
    if (const auto text = condor::string_literal(value))
      copy.set(name, condor::Value::of(*text));
    else if (const auto number = parse_integer(value))
      copy.set(name, condor::Value::of(number.value()));
    else
      copy.set_expression(name, std::string(value));
  CHECK(condor::parse_attributes(offline_ad(copy, wide(), 5, Seconds(1200))) ==
        condor::parse_attributes(once));
}

TEST_CASE("offline ads: GPUs, where the group has some") {
  auto ad = pilot();
  ad.set("TotalSlotGPUs", condor::Value::of(std::int64_t{1}));
  auto group = wide();
  group.gpus = 2;
  const auto made = offline_ad(ad, group, 0, Seconds(1200));
  for (const auto* name : {"GPUs", "TotalGPUs", "TotalSlotGPUs"})
    CHECK(line(condor::parse_attributes(made), name) == "2");
}

TEST_CASE("offline ads: what the collector has of them is read back") {
  Board board;
  const auto read = [&board](std::string_view json) {
    read_offer(condor::ad_from_json(json).value(), board);
  };
  read(R"({"GlidepodOfflineGroup": "a", "GlidepodOfflineNumber": 1, "LastHeardFrom": 100})");
  read(R"({"GlidepodOfflineGroup": "a", "GlidepodOfflineNumber": 2, "LastHeardFrom": 100,
           "MachineLastMatchTime": 120})");
  read(R"({"GlidepodOfflineGroup": "a", "GlidepodOfflineNumber": "x", "LastHeardFrom": 100})");
  read(R"({"Name": "slot1@pilot", "LastHeardFrom": 100})");
  REQUIRE(board.size() == 1);
  REQUIRE(board.at("a").size() == 2);
  CHECK(board.at("a")[0].matched == Time{});
  CHECK(board.at("a")[1].number == 2);
  CHECK(board.at("a")[1].heard == Time(Seconds(100)));
  CHECK(board.at("a")[1].matched == Time(Seconds(120)));
}
