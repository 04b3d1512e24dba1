#include "pilot-agent/slot_attributes.hpp"

#include <doctest/doctest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "lib/base/text.hpp"
#include "lib/condor/classad.hpp"

using namespace glidepod;
using namespace glidepod::agent;
using condor::Value;
using Json = nlohmann::json;

namespace {

Json status() {
  return Json::parse(
      R"({"failures": 2, "shortage": "job 11.0: over its limit", "binds": {"count": "warm=3 user=1", "within": "0.1=2 5=3", "took_s": 1.25},
    "containers": [
    {"name": "payload-0", "state": "running", "since": "2026-01-01T00:00:10Z", "job": "12.0", "owner": "alice@pool",
     "slot": "slot1_1@pilot", "image": "docker.io/library/python:3.12", "digest": "sha256:abc", "how": "pulled",
     "bind_s": 1.5, "wanted": "", "step": "", "trouble": ""},
    {"name": "payload-1", "state": "switching", "since": "2026-01-01T00:00:20Z", "job": "13.0", "owner": "bob@pool",
     "slot": "slot1_2@pilot", "image": "old:1", "digest": "sha256:old", "how": "", "wanted": "new:1",
     "step": "target by goodbye", "trouble": "Back-off pulling \"new:1\""},
    {"name": "payload-2", "state": "idle", "since": "2026-01-01T00:00:00Z", "job": "", "slot": "", "image": "x"}],
    "waiting": [
    {"job": "14.0", "slot": "slot1_3@pilot", "since": "2026-01-01T00:00:30Z", "image": "big:1", "pulling": true,
     "trouble": "ErrImagePull"},
    {"job": "15.0", "slot": "", "since": "2026-01-01T00:00:40Z", "image": "c:1", "pulling": false, "trouble": ""}]})");
}

// The blocks by name, as ads.
std::map<std::string, condor::Ad> blocks(const Json& status) {
  std::map<std::string, condor::Ad> result;
  condor::Ad ad;
  for (const auto& line : split(slot_attributes(status), '\n')) {
    if (line.starts_with("- ")) {
      CHECK(result.emplace(line.substr(2), std::exchange(ad, {})).second);
      continue;
    }
    if (line.empty()) continue;
    const auto equals = line.find(" = ");
    REQUIRE(equals != std::string::npos);
    auto expression = line.substr(equals + 3);
    // The evaluator knows one ad: goes_to puts the slot's attributes into the block's.
    if (line.starts_with("SlotMergeConstraint"))
      for (auto at = expression.find("TARGET."); at != std::string::npos; at = expression.find("TARGET."))
        expression.erase(at, 7);
    ad.set_expression(line.substr(0, equals), expression);
  }
  CHECK(ad.empty());
  return result;
}

// Into which slot HTCondor would merge it.
bool goes_to(condor::Ad block, const std::string& slot, const std::string& job, bool dynamic = true) {
  block.set("JobId", Value::of(job));
  block.set("Name", Value::of(slot));
  block.set("DynamicSlot", Value::of(dynamic));
  return block.evaluate("SlotMergeConstraint").boolean;
}

}  // namespace

TEST_CASE("slot_attributes: each job's slot has its container and image, and what it waits for") {
  const auto all = blocks(status());
  CHECK(all.size() == 8);
  const auto& running = all.at("payload-0");
  CHECK(running.text("GlidepodJob") == "12.0");
  CHECK(running.text("GlidepodState") == "running");
  CHECK(running.evaluate("GlidepodSince").integer == 1767225610);
  CHECK(running.text("GlidepodContainer") == "payload-0");
  CHECK(running.text("GlidepodImage") == "docker.io/library/python:3.12");
  CHECK(running.text("GlidepodDigest") == "sha256:abc");
  CHECK(running.text("GlidepodHow") == "pulled");
  CHECK(running.evaluate("GlidepodBindTime").real == 1.5);
  CHECK(running.evaluate("GlidepodWaitsFor").is(Value::Type::undefined));

  const auto& switching = all.at("payload-1");
  CHECK(switching.text("GlidepodImage") == "new:1");
  CHECK(switching.evaluate("GlidepodDigest").is(Value::Type::undefined));
  CHECK(switching.evaluate("GlidepodBindTime").is(Value::Type::undefined));
  CHECK(switching.text("GlidepodWaitsFor") == "its container to have the image: Back-off pulling \"new:1\"");

  const auto& pulling = all.at("waiting-0");
  CHECK(pulling.text("GlidepodState") == "pulling");
  CHECK(pulling.evaluate("GlidepodContainer").is(Value::Type::undefined));
  CHECK(pulling.text("GlidepodWaitsFor") == "its image, pulled beside the pod: ErrImagePull");
  CHECK(all.at("waiting-1").text("GlidepodState") == "waiting");
  CHECK(all.at("waiting-1").text("GlidepodWaitsFor") == "a payload container");

  CHECK(all.at("pod").text("GlidepodContainers") == "payload-0=running payload-1=switching payload-2=idle");
  CHECK(all.at("pod").evaluate("GlidepodFailures").integer == 2);
  CHECK(all.at("pod").text("GlidepodHeld") == "job 11.0: over its limit");
  CHECK(all.at("pod").text("GlidepodBinds") == "warm=3 user=1");
  CHECK(all.at("pod").text("GlidepodBindsWithin") == "0.1=2 5=3");
  CHECK(all.at("pod").evaluate("GlidepodBindSeconds").real == 1.25);
}

TEST_CASE("slot_attributes: a block goes to the slot of its job only") {
  const auto all = blocks(status());
  CHECK(goes_to(all.at("payload-0"), "slot1_1@pilot", "12.0"));
  CHECK_FALSE(goes_to(all.at("payload-0"), "slot1_1@pilot", "12.1"));
  CHECK_FALSE(goes_to(all.at("payload-0"), "slot1_2@pilot", "12.0"));  // another access point's
  CHECK(goes_to(all.at("waiting-1"), "slot1_9@pilot", "15.0"));        // its slot's name is not known
  // What has no job goes nowhere, and takes nothing's place.
  for (const auto* name : {"payload-2", "waiting-2"})
    for (const auto* job : {"12.0", "15.0", ""}) CHECK_FALSE(goes_to(all.at(name), "slot1_1@pilot", job));
  CHECK(goes_to(all.at("pod"), "slot1@pilot", "", false));
  CHECK_FALSE(goes_to(all.at("pod"), "slot1_1@pilot", "12.0", true));
}

TEST_CASE("slot_attributes: images in doubt are in every slot, as names of a list") {
  CHECK(blocks(status()).at("images").evaluate("GlidepodDoubtfulImages").is(Value::Type::undefined));
  auto told = status();
  told["doubts"] = {"docker://a", "docker://b c", "docker://d\"",         "docker://e\n",
                    "/cvmfs/f\\", "docker://g",   std::string(6000, 'h'), "i"};
  const auto images = blocks(told).at("images");
  CHECK(images.text("GlidepodDoubtfulImages") == "docker://a docker://g i");
  CHECK(goes_to(images, "slot1@pilot", "", false));
  CHECK(goes_to(images, "slot1_1@pilot", "12.0"));
}

TEST_CASE("slot_attributes: every block has the same attributes, so that nothing of a former job is left") {
  const auto text = slot_attributes(status());
  std::map<std::string, int> times;
  for (const auto& line : split(text, '\n'))
    if (line.starts_with("Glidepod")) ++times[line.substr(0, line.find(' '))];
  for (const auto* name :
       {"Job", "State", "Since", "Container", "Image", "Digest", "How", "BindTime", "WaitsFor"})
    CHECK(times[std::string("Glidepod") + name] == 4);
}

TEST_CASE("slot_attributes: a hostile name is one string on one line") {
  const std::string hostile = "a\"b\\c\nGlidepodJob = \"9.9\"\n- pod\r\x1b[31m\\";
  auto told = status();
  for (const auto* key : {"job", "slot", "image", "how", "digest"}) told["containers"][0][key] = hostile;
  told["containers"][1]["wanted"] = told["containers"][1]["trouble"] = hostile;
  told["waiting"][0]["trouble"] = hostile;
  const auto all = blocks(told);
  CHECK(all.size() == 8);
  const std::string tame = "a\"b/c GlidepodJob = \"9.9\" - pod  [31m/";
  CHECK(all.at("payload-0").text("GlidepodImage") == tame);
  CHECK(all.at("payload-0").text("GlidepodJob") == tame);
  CHECK(all.at("payload-1").text("GlidepodImage") == tame);
  CHECK(all.at("waiting-0").text("GlidepodWaitsFor") == "its image, pulled beside the pod: " + tame);
  CHECK(ad_string(std::string(5000, '"')).size() == 2002);
}
