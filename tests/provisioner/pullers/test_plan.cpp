#include "provisioner/pullers/plan.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace glidepod;
using namespace glidepod::provisioner;
using kube::PulledImage;
using Told = PulledImage::State;

namespace {

struct Scene {
  std::map<std::string, PullingPilot> pilots;
  std::map<std::string, Puller> pullers;
  std::map<std::string, std::int64_t> made;
  PullLimits limits;

  PullingPilot& pilot(const std::string& name, const std::string& node,
                      const std::vector<std::string>& images) {
    PullingPilot& pilot = pilots[name];
    pilot.name = name;
    pilot.node = node;
    pilot.pilot_image = "pilot:1";
    for (const auto& image : images)
      pilot.wanted.push_back({image, fmt::format("{}-{}", name, pilot.wanted.size())});
    return pilot;
  }
  PullPlan plan() const { return plan_pulls(pilots, pullers, made, limits, "wn"); }
  // The plan is carried out, and the watches have told of it.
  PullPlan pass() {
    PullPlan plan = this->plan();
    for (const auto& one : plan.create)
      pullers[one.name] = {one.name, "uid", one.key.node, one.key.image, Told::pulling, "", "", false};
    for (const auto& name : plan.remove) pullers.erase(name);
    for (const auto& [name, text] : plan.annotate) pilots.at(name).told = kube::read_pulled(text);
    return plan;
  }
  void all_pullers(Told state, const std::string& message = "") {
    for (auto& [name, puller] : pullers) {
      puller.state = state;
      puller.reason = state == Told::failed ? "ErrImagePull" : "";
      puller.message = message;
    }
  }
  Told told(const std::string& pilot, std::size_t index = 0) const {
    return pilots.at(pilot).told.at(index).state;
  }
};

}  // namespace

TEST_CASE("pull plan: a puller, its result, its end") {
  Scene scene;
  scene.pilot("one", "n1", {"a"});
  CHECK(scene.pass().create.size() == 1);
  CHECK(scene.told("one") == Told::pulling);
  auto quiet = scene.pass();
  CHECK((quiet.create.empty() && quiet.remove.empty() && quiet.annotate.empty()));
  scene.all_pullers(Told::failed, "i/o timeout");
  scene.pass();
  CHECK(scene.pilots.at("one").told.at(0).message == "i/o timeout");
  scene.all_pullers(Told::ready);
  scene.pass();
  CHECK(scene.told("one") == Told::ready);
  CHECK(scene.pass().remove.size() == 1);
  quiet = scene.pass();
  CHECK((quiet.create.empty() && quiet.remove.empty() && quiet.annotate.empty()));
  // The same image again is another question.
  scene.pilots.at("one").wanted = {{"a", "again"}};
  CHECK(scene.pass().create.size() == 1);
}

TEST_CASE("pull plan: one puller for an image and a node, however many ask") {
  Scene scene;
  scene.pilot("one", "n1", {"a"});
  scene.pilot("two", "n1", {"a"});
  scene.pilot("three", "n2", {"a"});
  CHECK(scene.pass().create.size() == 2);
  scene.all_pullers(Told::ready);
  scene.pass();
  for (const char* name : {"one", "two", "three"}) CHECK(scene.told(name) == Told::ready);
  // What needs other credentials, or is to be pulled otherwise, is another matter.
  scene.pilot("four", "n1", {"b"});
  scene.pilot("five", "n1", {"b"}).secrets = {"mine"};
  scene.pilot("six", "n1", {"b"}).policy = "Always";
  CHECK(scene.pass().create.size() == 3);
}

TEST_CASE("pull plan: nobody wants it any more") {
  Scene scene;
  scene.pilot("one", "n1", {"a"});
  scene.pass();
  SUBCASE("taken back") {
    scene.pilots.at("one").wanted.clear();
  }
  SUBCASE("the pilot is gone") {
    scene.pilots.clear();
  }
  CHECK(scene.pass().remove.size() == 1);
}

TEST_CASE("pull plan: what is lost stays so") {
  Scene scene;
  scene.pilot("one", "n1", {"a"});
  scene.pass();
  scene.all_pullers(Told::lost);
  scene.pass();
  CHECK(scene.told("one") == Told::lost);
  CHECK(scene.pass().remove.size() == 1);
  const auto quiet = scene.pass();
  CHECK((quiet.create.empty() && quiet.annotate.empty()));
}

TEST_CASE("pull plan: a puller on its way out is no puller, and no second one is made beside it") {
  Scene scene;
  scene.pilot("one", "n1", {"a"});
  scene.pass();
  scene.pullers.begin()->second.ending = true;
  scene.pullers.begin()->second.state = Told::ready;
  const auto plan = scene.pass();
  CHECK((plan.create.empty() && plan.remove.empty()));
  CHECK(scene.told("one") == Told::pulling);
  scene.pullers.clear();
  CHECK(scene.pass().create.size() == 1);
}

TEST_CASE("pull plan: limits hold, and a pilot that wants everything does not starve the others") {
  Scene scene;
  scene.limits = {4, 6, 100};
  std::vector<std::string> many;
  for (int i = 0; i < 16; ++i) many.push_back("many:" + std::to_string(i));
  scene.pilot("a-hostile", "n1", many);
  scene.pilot("one", "n1", {"x"});
  scene.pilot("two", "n1", {"y"});
  scene.pilot("three", "n2", {"z"});
  auto plan = scene.pass();
  CHECK(plan.create.size() == 5);
  for (const char* name : {"one", "two", "three"}) CHECK(scene.told(name) == Told::pulling);
  CHECK(scene.told("a-hostile", 15) == Told::lost);
  // In all.
  scene.pilot("four", "n3", {"v", "w"});
  CHECK(scene.pass().create.size() == 1);
  CHECK(scene.pullers.size() == 6);
  // And nothing more comes of asking again and again.
  for (int i = 0; i < 50; ++i) {
    for (auto& wanted : scene.pilots.at("a-hostile").wanted) wanted.ask += 'x';
    scene.pass();
    CHECK(scene.pullers.size() <= 6);
  }
}

TEST_CASE("pull plan: no more than so many in a minute for a node") {
  Scene scene;
  scene.limits = {8, 100, 3};
  scene.made["n1"] = 2;
  scene.pilot("one", "n1", {"a", "b"});
  scene.pilot("two", "n2", {"c"});
  CHECK(scene.pass().create.size() == 2);
  CHECK(scene.told("one", 1) == Told::lost);
}

TEST_CASE("pull plan: a name that stands for another image is not believed") {
  Scene scene;
  scene.pilot("one", "n1", {"a"});
  scene.pass();
  scene.pullers.begin()->second.image = "b";
  scene.pullers.begin()->second.state = Told::failed;
  scene.pass();
  CHECK(scene.told("one") == Told::lost);
}

TEST_CASE("pull plan: names are names, and each key has its own") {
  const PullKey key{"n", "i", "", {}};
  const std::string name = key.pod_name(std::string(100, 'a'));
  CHECK(name.size() == 63);
  CHECK(key.pod_name("wn") == PullKey{"n", "i", "", {}}.pod_name("wn"));
  CHECK(key.pod_name("wn") != PullKey{"n", "i", "Always", {}}.pod_name("wn"));
  CHECK(key.pod_name("wn") != PullKey{"n", "i", "", {"s"}}.pod_name("wn"));
}
