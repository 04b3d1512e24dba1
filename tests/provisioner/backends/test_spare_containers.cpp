// Payload containers that pods get beyond the template's, and what rules of a cluster make of them.
#include "provisioner/backends/spare_containers.hpp"

#include <atomic>
#include <set>
#include <thread>

#include "lib/base/file.hpp"
#include "lib/base/text.hpp"
#include "tests/provisioner/backends/kubernetes_scene.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;
using namespace glidepod::provisioner::kubernetes_test;

namespace {

// A pod with so many payload containers.
Json template_of(int payloads) {
  auto pod = Json::parse(R"({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {
    "restartPolicy": "OnFailure",
    "initContainers": [{"name": "install", "image": "pilot:1"}],
    "containers": [{"name": "pilot", "image": "pilot:1",
                    "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"cpu": "1", "memory": "512Mi"}}}],
    "volumes": [{"name": "shared", "emptyDir": {}}]}})");
  for (int i = 0; i < payloads; ++i) {
    const auto name = fmt::format("payload-{}", i);
    pod["spec"]["containers"].push_back({{"name", name},
                                         {"image", "pilot:1"},
                                         {"command", {"/glidepod/bin/glue", "--container", name}},
                                         {"resources", {{"limits", {{"ephemeral-storage", "4Gi"}}}}},
                                         {"securityContext", {{"runAsUser", 0}}},
                                         {"volumeMounts",
                                          {{{"name", "shared"}, {"mountPath", "/glidepod"}},
                                           {{"name", name + "-shm"}, {"mountPath", "/dev/shm"}}}}});
    pod["spec"]["volumes"].push_back({{"name", name + "-shm"}, {"emptyDir", {{"medium", "Memory"}}}});
  }
  pod["spec"]["containers"].push_back({{"name", "log"}, {"image", "other:1"}});
  return pod;
}

KubernetesSettings settings_of(const std::string& lines) {
  Ini ini;
  REQUIRE(ini.read("[k8s]\n" + lines, "f").ok());
  const auto loaded = parse_settings(ini);
  if (!loaded) FAIL(loaded.error().message());
  return loaded->settings.kubernetes;
}

PodMaker maker_of(const std::string& lines, const Json& from) {
  auto maker = PodMaker::create(settings_of(lines), &from);
  if (!maker) FAIL(maker.error().message());
  return std::move(maker).value();
}

Json made_by(const std::string& lines, const Json& from, const Group& group = {.cpus = 2}) {
  return maker_of(lines, from).make(group, "wn-1").value();
}

std::string told(const Json& pod, std::string_view name) {
  for (const auto& container : pod["spec"]["containers"])
    if (container["name"] == "pilot")
      for (const auto& variable : container["env"])
        if (variable["name"] == name) return variable.value("value", "");
  return "nothing";
}

int payloads_in(Json pod) {
  return static_cast<int>(payloads_of(pod).size());
}

// Why pods of this template get no spare containers; they have as many as the template.
std::string why_none(const std::string& lines, const Json& from, const Group& group = {.cpus = 2}) {
  const auto maker = maker_of(lines, from);
  const auto pod = maker.make(group, "wn-1").value();
  if (payloads_in(pod) > payloads_in(from)) return "it has some";
  CHECK(maker.spares(group) == 0);
  return maker.no_spares();
}

}  // namespace

TEST_CASE("spare containers: they cost a pod no requests, and its jobs at a time are the template's") {
  for (const int payloads : {1, 2, 3, 4, 8})
    for (const std::int64_t cpus : {1, 2, 4, 8, 32}) {
      CAPTURE(payloads);
      CAPTURE(cpus);
      const auto from = template_of(payloads);
      const Group group{.cpus = cpus, .memory_mb = 9001};
      const auto with = made_by("", from, group), without = made_by("warm=off\n", from, group);
      const auto spares = auto_spares(payloads, cpus);
      CHECK(spares >= 1);
      CHECK(payloads_in(without) == payloads);
      CHECK(payloads_in(with) == payloads + spares);
      CHECK(told(with, "GLIDEPOD_WARM") == std::to_string(spares));
      CHECK(told(without, "GLIDEPOD_WARM") == "nothing");
      const auto names = split(told(with, "GLIDEPOD_PAYLOAD_CONTAINERS"), ' ');
      CHECK(names.size() == static_cast<std::size_t>(payloads + spares));
      CHECK(std::set<std::string>(names.begin(), names.end()).size() == names.size());
      const auto sum = resources_of_pod(with).value(), before = resources_of_pod(without).value();
      CHECK(sum.cpu_milli == before.cpu_milli);
      CHECK(sum.memory_bytes == before.memory_bytes);
      CHECK(sum.disk_bytes == before.disk_bytes);
      CHECK(with["metadata"]["annotations"]["glidepod.io/requests.cpu"] ==
            without["metadata"]["annotations"]["glidepod.io/requests.cpu"]);
      // Each may use what any other may.
      CHECK(sum.limit_memory_bytes - (512 << 20) ==
            (before.limit_memory_bytes - (512 << 20)) / payloads * (payloads + spares));
    }
}

TEST_CASE(
    "spare containers: each is a copy of the last payload container, behind all others, with its own name") {
  const auto from = template_of(2);
  const auto pod = made_by("warm=2\n", from);
  const auto& containers = pod["spec"]["containers"];
  REQUIRE(containers.size() == 6);
  for (std::size_t i = 0; i < 4; ++i) CHECK(containers[i]["name"] == from["spec"]["containers"][i]["name"]);
  CHECK(told(pod, "GLIDEPOD_PAYLOAD_CONTAINERS") == "payload-0 payload-1 payload-2 payload-3");
  for (const std::size_t i : {4U, 5U}) {
    const auto name = fmt::format("payload-{}", i - 2);
    auto expected = containers[2];
    expected["name"] = name;
    expected["command"][2] = name;
    expected["volumeMounts"][1]["name"] = name + "-shm";
    CHECK(containers[i] == expected);
    CHECK(std::ranges::count_if(pod["spec"]["volumes"], [&](const Json& volume) {
            return volume["name"] == name + "-shm" && volume["emptyDir"]["medium"] == "Memory";
          }) == 1);
  }
}

TEST_CASE("spare containers: a volume that a removed container has left keeps its name") {
  auto from = template_of(2);
  from["spec"]["volumes"].push_back({{"name", "payload-2-shm"}, {"emptyDir", Json::object()}});
  CHECK(told(made_by("warm=1\n", from), "GLIDEPOD_PAYLOAD_CONTAINERS") == "payload-0 payload-1 payload-3");
}

TEST_CASE("spare containers: sidecars get them too") {
  const auto pod = made_by("layout=sidecars\nwarm=1\n", template_of(1));
  const auto& first = pod["spec"]["initContainers"];
  REQUIRE(first.size() == 3);
  CHECK(first[2]["name"] == "payload-1");
  CHECK(first[2]["restartPolicy"] == "Always");
  CHECK(told(pod, "GLIDEPOD_WARM") == "1");
}

TEST_CASE("spare containers: none where a device belongs to one container") {
  const auto from = template_of(2);
  const auto gpus = made_by("warm=3\n", from, {.cpus = 2, .gpus = 1});
  CHECK(payloads_in(gpus) == 1);
  CHECK(told(gpus, "GLIDEPOD_WARM") == "nothing");
  CHECK(payloads_in(made_by("", template_of(1), {.cpus = 2, .gpus = 1})) == 1);
  const std::string pods_have =
      "the pods have devices (resources_dict, request_fuse), which belong to one container";
  CHECK(why_none("resources_dict=example.com/nic:1\n", from) == pods_have);
  CHECK(why_none("request_fuse=yes\n", from) == pods_have);
  CHECK(why_none("request_fuse=no\n", from) == "it has some");
  const std::string has = "a payload container has devices, of which a copy has none";
  auto other = from;
  other["spec"]["containers"][1]["resources"]["limits"]["example.com/gpu"] = "1";
  CHECK(why_none("", other) == has);
  other = from;
  other["spec"]["containers"][2]["resources"]["claims"] = Json::parse(R"([{"name": "gpus"}])");
  CHECK(why_none("", other) == has);
}

TEST_CASE("spare containers: none in pods of class Guaranteed, by the settings or in effect") {
  auto from = template_of(1);
  CHECK(why_none("qos_class=Guaranteed\n", from) == "qos_class=Guaranteed: pods have one payload container");
  CHECK(why_none("use_large_limit=no\n", from) == "it has some");  // its pilot may use more than it requests
  from["spec"]["containers"].erase(2);
  from["spec"]["containers"][0]["resources"]["requests"] =
      from["spec"]["containers"][0]["resources"]["limits"];
  from["spec"]["initContainers"][0]["resources"]["limits"] = {{"cpu", "1"}, {"memory", "1Gi"}};
  CHECK(why_none("use_large_limit=no\n", from) ==
        "no container may use more than it requests: one beside it would change that");
  CHECK(why_none("", from) == "it has some");
  auto two = template_of(2);
  CHECK(payloads_in(made_by("qos_class=Guaranteed\nwarm=2\n", two)) == 1);
}

TEST_CASE("spare containers: none where jobs are no other user than their neighbours' glue") {
  const std::string why = "the payload containers do not start as root, so that a job reaches its neighbours";
  auto from = template_of(1);
  from["spec"]["containers"][1]["securityContext"] = {{"runAsUser", 1000}};
  CHECK(why_none("", from) == why);
  from["spec"]["containers"][1]["securityContext"] = {{"runAsNonRoot", true}};
  CHECK(why_none("", from) == why);
  from["spec"]["containers"][1].erase("securityContext");
  CHECK(why_none("", from) == "it has some");
  from["spec"]["securityContext"] = {{"runAsUser", 1000}};
  CHECK(why_none("", from) == why);
  // The container's own word counts before the pod's.
  from["spec"]["containers"][1]["securityContext"] = {{"runAsUser", 0}};
  CHECK(why_none("", from) == "it has some");
}

TEST_CASE("spare containers: a template that has its own gets none added") {
  const auto own = [](const std::string& name) {
    return fmt::format("the pilots' environment says {}: spare containers are the pod template's", name);
  };
  const auto old = own("GLIDEPOD_SPARES, the old name of GLIDEPOD_WARM");
  const auto with = [](const char* name, const char* value) {
    auto from = template_of(3);
    from["spec"]["containers"][0]["env"] = Json::array({{{"name", name}, {"value", value}}});
    return from;
  };
  CHECK(why_none("envs_dict=GLIDEPOD_SPARES:2\n", template_of(3)) == old);
  CHECK(why_none("", with("GLIDEPOD_SPARES", "2")) == old);
  CHECK(why_none("warm=4\n", with("GLIDEPOD_WARM", "2")) == own("GLIDEPOD_WARM"));
  CHECK(told(made_by("", with("GLIDEPOD_WARM", "2")), "GLIDEPOD_WARM") == "2");
  CHECK(why_none("", with("GLIDEPOD_WARM", "off")) == own("GLIDEPOD_WARM"));
  CHECK(why_none("envs_dict=GLIDEPOD_WARM:1\n", template_of(3)) == own("GLIDEPOD_WARM"));
  CHECK(why_none("envs_dict=GLIDEPOD_PAYLOAD_CONTAINERS:3\n", template_of(3)) ==
        own("GLIDEPOD_PAYLOAD_CONTAINERS"));
  // "auto" leaves it to the provisioner, wherever that stands.
  CHECK(told(made_by("warm=2\n", with("GLIDEPOD_WARM", "auto")), "GLIDEPOD_WARM") == "2");
  CHECK(told(made_by("warm=2\nenvs_dict=GLIDEPOD_WARM:auto\n", template_of(3)), "GLIDEPOD_WARM") == "2");
}

TEST_CASE("spare containers: what the manifests' templates get") {
  const auto of = [](const std::string& name) {
    return Json::parse(read_file(GLIDEPOD_MANIFESTS "/" + name + "/pilot-pod.json").value());
  };
  const auto shipped = read_file(GLIDEPOD_SHIPPED_SETTINGS).value();
  Ini ini;
  REQUIRE(ini.read(shipped, "provisioner.conf").ok());
  const auto settings = parse_settings(ini).value().settings.kubernetes;
  const auto from = of("provisioner");
  const auto maker = PodMaker::create(settings, &from).value();
  CHECK(maker.no_spares().empty());
  CHECK(maker.spares({.cpus = 1}) == auto_spares(2, 1));
  CHECK(maker.spares({.cpus = 8}) == auto_spares(2, 8));
  CHECK(maker.spares({.cpus = 8, .gpus = 1}) == 0);
  CHECK_FALSE(why_none("qos_class=Guaranteed\n", of("nrp")).empty());
  const auto ospool = of("ospool");
  CHECK(payloads_in(made_by("", ospool)) == 3 + auto_spares(3, 2));
}

TEST_CASE("spare containers: pods without payload containers stay as they are") {
  const auto maker = PodMaker::create(settings_of("warm=3\n"), nullptr).value();
  CHECK(maker.spares({.cpus = 4}) == 0);
  CHECK(maker.no_spares().empty());
  CHECK(maker.make({.cpus = 4}, "wn-1").value()["spec"]["containers"].size() == 1);
}

TEST_CASE("spare containers: their number in a pilot's environment, also by its old name") {
  const auto of = [](std::initializer_list<std::pair<const char*, const char*>> all) {
    Json pilot = {{"name", "pilot"}, {"env", Json::array()}};
    for (const auto& [name, value] : all) pilot["env"].push_back({{"name", name}, {"value", value}});
    return spares_of(pilot);
  };
  CHECK(of({}) == 0);
  CHECK(of({{"GLIDEPOD_WARM", "3"}}) == 3);
  CHECK(of({{"GLIDEPOD_WARM", "off"}}) == 0);
  CHECK(of({{"GLIDEPOD_WARM", "many"}}) == 0);
  CHECK(of({{"GLIDEPOD_SPARES", "2"}}) == 2);
  CHECK(of({{"GLIDEPOD_SPARES", "2"}, {"GLIDEPOD_WARM", "auto"}}) == 2);
  CHECK(of({{"GLIDEPOD_WARM", "off"}, {"GLIDEPOD_SPARES", "2"}}) == 0);
  CHECK(of({{"GLIDEPOD_WARM", "1"}, {"GLIDEPOD_SPARES", "2"}}) == 1);
}

namespace {

int payloads_of_pod(const Scene& scene, const std::string& name) {
  return payloads_in(scene.pods.at(name));
}

Json quota_of(const char* resource) {
  return {{"items",
           {{{"spec", Json::object()},
             {"status", {{"hard", {{resource, "64"}}}, {"used", {{resource, "1"}}}}}}}}};
}

}  // namespace

TEST_CASE("spare containers: a quota that counts limits would count theirs, so that `auto` means none") {
  const auto from = template_of(2);
  for (const auto* resource : {"limits.cpu", "limits.memory", "requests.cpu"}) {
    CAPTURE(resource);
    const bool counts = std::string_view(resource).starts_with("limits");
    for (const auto warm : {std::optional<std::int64_t>(), std::optional<std::int64_t>(1)}) {
      Scene scene(&from, false, warm);
      scene.instead = [&](const FakeServer::Request& request) -> std::optional<FakeServer::Reply> {
        if (request.target.find("/resourcequotas") == std::string::npos) return {};
        return FakeServer::json(200, quota_of(resource).dump());
      };
      Demand demand;
      demand.groups[{}] = {};
      auto seen = scene.look();
      scene.kubernetes->fit(demand, seen.capacity);
      CHECK(scene.create("a") == "");
      CHECK(payloads_of_pod(scene, "a") == (counts && !warm ? 2 : 3));
      // What the decisions reckon with is what is made.
      CHECK(seen.capacity.needs.at({}).limit_cpu_milli ==
            resources_of_pod(scene.pods.at("a")).value().limit_cpu_milli);
    }
  }
}

TEST_CASE("spare containers: a quota that a place tells late changes nothing of what is reckoned meanwhile") {
  const auto from = template_of(2);
  Scene scene(&from);
  std::atomic<bool> begun = false;
  scene.instead = [&](const FakeServer::Request& request) -> std::optional<FakeServer::Reply> {
    if (request.target.find("/resourcequotas") == std::string::npos) return {};
    while (!begun) std::this_thread::yield();
    return FakeServer::json(200, quota_of("limits.cpu").dump());
  };
  const auto limits = [&] {
    Demand demand;
    for (int i = 0; i < 300; ++i) demand.groups[{.memory_mb = 4096 + i}] = {};
    Capacity capacity;
    begun = true;
    scene.kubernetes->fit(std::move(demand), capacity);
    std::set<std::int64_t> result;
    for (const auto& [group, need] : capacity.needs) result.insert(need.limit_cpu_milli);
    return result;
  };
  std::set<std::int64_t> meanwhile;
  std::thread aside([&] { meanwhile = limits(); });
  scene.look();
  aside.join();
  CHECK(meanwhile.size() == 1);
  const auto later = limits();
  CHECK(later.size() == 1);
  CHECK(*later.begin() <= *meanwhile.begin());
}

TEST_CASE("spare containers: where they alone are refused, pods are made without them from then on") {
  const auto from = template_of(2);
  for (const auto warm : {std::optional<std::int64_t>(), std::optional<std::int64_t>(1)}) {
    Scene scene(&from, false, warm);
    std::vector<int> tried;
    bool all = true;
    scene.instead = [&](const FakeServer::Request& request) -> std::optional<FakeServer::Reply> {
      if (request.method != "POST") return {};
      tried.push_back(payloads_in(Json::parse(request.body)));
      if (tried.back() == 2 && !all) return {};
      return FakeServer::json(403,
                              Scene::status(403, "Forbidden", "minimum memory usage per Container is 2Gi"));
    };
    // What is refused all the same says nothing of them.
    CHECK(scene.create("a") == "403 Forbidden: minimum memory usage per Container is 2Gi");
    CHECK(tried == std::vector{3, 2});
    tried.clear();
    all = false;
    CHECK(scene.create("b") == "");
    CHECK(tried == std::vector{3, 2});
    CHECK(told(scene.pods.at("b"), "GLIDEPOD_WARM") == "nothing");
    tried.clear();
    CHECK(scene.create("c") == "");
    CHECK(tried == std::vector{2});
    // The pods made so are as pods are made now.
    for (const auto& pod : scene.look().pods) CHECK_FALSE(pod.outdated);
    // Nor does a process that has yet to learn it take them back, unless they are of another template.
    scene.restart();
    scene.pods["b"]["metadata"]["annotations"]["glidepod.io/made-as"] = "another";
    const auto seen = scene.look();
    REQUIRE(seen.pods.size() == 2);
    CHECK(seen.pods[0].outdated);
    CHECK_FALSE(seen.pods[1].outdated);
  }
}

TEST_CASE("spare containers: a quota that is used up says nothing of them") {
  const auto from = template_of(2);
  Scene scene(&from, false, {});
  std::vector<int> tried;
  bool full = true;
  scene.instead = [&](const FakeServer::Request& request) -> std::optional<FakeServer::Reply> {
    if (request.method != "POST") return {};
    tried.push_back(payloads_in(Json::parse(request.body)));
    if (!std::exchange(full, false)) return {};
    return FakeServer::json(403, Scene::status(403, "Forbidden", "exceeded quota: pods, requested: pods=1"));
  };
  CHECK(scene.create("a") == "403 Forbidden: exceeded quota: pods, requested: pods=1");
  CHECK(scene.create("b") == "");
  CHECK(tried == std::vector{3, 3});
}

TEST_CASE("spare containers: an API that fails for a while is no refusal of them") {
  const auto from = template_of(2);
  Scene scene(&from);
  int attempts = 0;
  scene.instead = [&](const FakeServer::Request& request) -> std::optional<FakeServer::Reply> {
    if (request.method != "POST" || ++attempts > 1) return {};
    return FakeServer::json(503, Scene::status(503, "ServiceUnavailable", "not now"));
  };
  CHECK(scene.create("a") == "");
  CHECK(payloads_of_pod(scene, "a") == 3);
}
