#include "provisioner/backends/places.hpp"

#include <doctest/doctest.h>

#include "provisioner/backends/table.hpp"
#include "tests/condor/fake_runner.hpp"
#include "tests/provisioner/group.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;

namespace {

constexpr Time k_now{Seconds(1'000'000)};

class FakePlace : public Backend {
 public:
  Seen seen;
  bool answers = true;
  int looks = 0;
  std::function<void(Seen)> waiting;
  std::vector<std::string> avoided, created, removed, told;
  Seconds lifetime{0};

  void look(Time, std::function<void(Seen)> done) override {
    ++looks;
    if (answers) return done(seen);
    waiting = std::move(done);
  }
  Demand fit(Demand demand, Capacity& capacity) const override {
    for (const auto& entry : demand.groups) capacity.needs[entry.first] = {.cpu_milli = 1000};
    return demand;
  }
  void avoid(const std::vector<std::string>& nodes) override { avoided = nodes; }
  void create(const Group&, const std::string& name, std::function<void(Result<void>)> done) override {
    created.push_back(name);
    done({});
  }
  void remove(const std::string& name, std::function<void(Result<void>)> done) override {
    removed.push_back(name);
    done({});
  }
  void tell(const PodEvent& event, Time) override { told.push_back(event.pod); }
  const std::string& image() const override { return image_; }
  std::string slot_constraint() const override { return "Mine"; }
  std::string slot_pod_attribute() const override { return "K8SPodName"; }
  std::vector<JobClause> jobs_taken() const override { return container_jobs("", false, lifetime); }
  PilotAttributes pilot_attributes() const override { return attributes; }
  PilotAttributes attributes{.known = true, .more = {}};

 private:
  std::string image_ = "img";
};

struct Scene {
  Loop loop = Loop::create().value();
  FakePlace *east = nullptr, *west = nullptr;
  std::unique_ptr<Places> places;

  Scene() {
    std::vector<Places::Place> all;
    for (auto [name, fake] : {std::pair{"east", &east}, {"west", &west}}) {
      auto backend = std::make_unique<FakePlace>();
      *fake = backend.get();
      backend->seen.pods.push_back({"a", group(1), "img", PodState::unregistered, k_now});
      backend->seen.pods.back().node = "n1";
      all.push_back(
          {{.name = name, .image = "img"}, "ns", std::string(name) + ".org", nullptr, std::move(backend)});
    }
    places = std::make_unique<Places>(loop, std::move(all), Milliseconds(20));
  }
  Seen look() {
    std::optional<Seen> got;
    places->look(k_now, [&got](Seen seen) { got = std::move(seen); });
    const auto deadline = Loop::now() + Milliseconds(2000);
    while (!got && Loop::now() < deadline) REQUIRE(loop.run_once(Milliseconds(100)).ok());
    REQUIRE(got);
    return std::move(*got);
  }
};

}  // namespace

TEST_CASE("places: names of pods and nodes have their place in front, and come back without it") {
  Scene scene;
  scene.west->seen.capacity.quota_left = Resources{.pods = 7};
  scene.west->seen.problems = {"a bad pod"};
  const auto seen = scene.look();
  REQUIRE(seen.pods.size() == 2);
  CHECK(seen.pods[0].name == "east/a");
  CHECK(seen.pods[1].name == "west/a");
  CHECK(seen.pods[1].node == "west/n1");
  CHECK(seen.pods[1].image == "west/img");
  CHECK(seen.capacity.places.at("west").quota_left->pods == 7);
  CHECK(seen.problems == std::vector<std::string>{"west: a bad pod"});
  CHECK(seen.unseen.empty());
  CHECK(scene.places->places()[1].image == "west/img");
  CHECK(scene.places->image() == "img");

  scene.places->avoid({"east/n1", "west/n2", "west/n3"});
  CHECK(scene.east->avoided == std::vector<std::string>{"n1"});
  CHECK(scene.west->avoided == std::vector<std::string>{"n2", "n3"});
  int ended = 0;
  const auto count = [&ended](const Result<void>& end) { ended += end.ok(); };
  scene.places->create(group(1), "west/b", count);
  scene.places->remove("east/a", count);
  scene.places->tell({.pod = "west/a", .reason = "Bound", .message = ""}, k_now);
  CHECK(ended == 2);
  CHECK(scene.west->created == std::vector<std::string>{"b"});
  CHECK(scene.east->removed == std::vector<std::string>{"a"});
  CHECK(scene.west->told == std::vector<std::string>{"a"});
  CHECK(scene.east->created.empty());
}

TEST_CASE("places: what a pod of a place that is gone from the settings is asked fails") {
  Scene scene;
  bool failed = false;
  scene.places->remove("north/a", [&](const Result<void>& end) { failed = !end.ok(); });
  CHECK_FALSE(failed);
  REQUIRE(scene.loop.run_once(Milliseconds(100)).ok());
  CHECK(failed);
}

TEST_CASE("places: slots are told apart by namespace and domain") {
  Scene scene;
  CHECK(scene.places->slot_constraint() == "(Mine) || (Mine)");
  const auto of = [&scene](const char* domain) {
    condor::Ad ad;
    ad.set_expression("K8SNamespace", "\"ns\"");
    ad.set_expression("K8SDomain", fmt::format("\"{}\"", domain));
    return scene.places->place_of_slot(ad);
  };
  CHECK(of("east.org") == "east");
  CHECK(of("west.org") == "west");
  CHECK(of("north.org").empty());
}

TEST_CASE("places: a job counts whose time one of them has") {
  Scene scene;
  const auto limit = [&scene] {
    const auto jobs = scene.places->jobs_taken();
    return jobs.back().rule == JobRule::time ? jobs.back().limit : Seconds(-1);
  };
  CHECK(limit() == Seconds(-1));
  scene.east->lifetime = Seconds(7200);
  CHECK(limit() == Seconds(-1));
  scene.west->lifetime = Seconds(20700);
  CHECK(limit() == Seconds(19800));
  std::swap(scene.east->lifetime, scene.west->lifetime);
  CHECK(limit() == Seconds(19800));
}

TEST_CASE("places: what jobs need is asked of each") {
  Scene scene;
  Demand demand;
  demand.groups[group(1)].idle = 1;
  Capacity capacity;
  scene.places->fit(demand, capacity);
  CHECK(capacity.places.at("east").needs.contains(group(1)));
  CHECK(capacity.places.at("west").needs.contains(group(1)));
}

TEST_CASE("places: one that is blind or silent is unseen, and blind is who sees none") {
  Scene scene;
  scene.east->seen.blind = "401 Unauthorized";
  auto seen = scene.look();
  CHECK(seen.unseen == std::map<std::string, std::string>{{"east", "401 Unauthorized"}});
  CHECK_FALSE(seen.blind);
  CHECK(seen.pods.size() == 1);
  scene.west->answers = false;
  seen = scene.look();
  CHECK(seen.blind == "east: 401 Unauthorized; west: no answer in 0 s");
  // It is not asked again before it has answered, and what it says then is too old.
  scene.east->seen.blind.reset();
  scene.west->answers = true;
  seen = scene.look();
  CHECK(seen.unseen.at("west") == "no answer yet");
  CHECK(scene.west->looks == 2);
  scene.west->waiting(scene.west->seen);
  seen = scene.look();
  CHECK(seen.unseen.empty());
  CHECK(scene.west->looks == 3);
}

TEST_CASE("backends: a site's own file comes after all others") {
  CHECK(default_files(*find_backend("kubernetes")) ==
        List{"pod.conf", "osg_provisioner.conf", "provisioner.conf", "site.conf"});
}

TEST_CASE("places: as the settings have them") {
  auto loop = Loop::create().value();
  condor::FakeRunner runner;
  const auto make = [&](std::string_view text, Settings& settings) {
    Ini ini;
    REQUIRE(ini.read(text, "f").ok());
    settings = parse_settings(ini)->settings;
    std::unique_ptr<kube::Client> client;
    const nlohmann::json none;
    const auto backend =
        find_backend("kubernetes")
            ->make({.loop = loop,
                    .runner = runner,
                    .settings = settings,
                    .pod_template = none,
                    .mode = PodFeed::Mode::once,
                    .endpoint =
                        [] {
                          return Result<kube::Endpoint>(kube::Endpoint{"https://here", {}, {}, {}});
                        },
                    .own_namespace = nullptr,
                    .client = &client,
                    .observer = {}});
    if (!backend) return backend.error().message();
    CHECK(client);
    std::string all;
    for (const auto& place : backend.value()->places())
      all += fmt::format("{} {} {} {};", place.name, place.image, place.weight, place.max_pods_per_cluster);
    return all;
  };
  Settings settings;
  const std::string two =
      "[htcondor]\nforce_k8s_namespace_matching=no\n[k8s]\nforce_k8s_namespace_matching=no\n";
  CHECK(make("[k8s]\nnamespace=ns\n", settings).empty());
  CHECK(
      make(
          two +
              "k8s_image=i\n[k8s:a]\nnamespace=n1\nweight=2\n[k8s:b]\nnamespace=n2\nmax_pods_per_cluster=7\n",
          settings) == "a a/i 2 20;b b/i 1 7;");
  CHECK(make("[k8s]\nnamespace=ns\n[k8s:a]\n[k8s:b]\nk8s_domain=b\n", settings).starts_with("a "));
  CHECK(settings.kubernetes.name_space == "ns");
  CHECK(make("[k8s]\nnamespace=ns\n[k8s:a]\n[k8s:b]\n", settings).find("same namespace and k8s_domain") !=
        std::string::npos);
  CHECK(make("[k8s]\n[k8s:a]\nnamespace=n1\n[k8s:b]\nnamespace=n2\n", settings)
            .find("force_k8s_namespace_matching=no") != std::string::npos);
  CHECK(make(two + "[k8s:a]\n", settings) == "[k8s:a]: [k8s] namespace is not set");
}

TEST_CASE("places: an attribute that pilots of one place may have may be there") {
  Scene scene;
  CHECK(scene.places->pilot_attributes() == PilotAttributes{.known = true, .more = {}});
  scene.east->attributes.more = {"SiteName"};
  scene.west->attributes.more = {"Rack"};
  CHECK(scene.places->pilot_attributes() == PilotAttributes{true, {"SiteName", "Rack"}});
  scene.west->attributes.known = false;
  CHECK_FALSE(scene.places->pilot_attributes().known);
}
