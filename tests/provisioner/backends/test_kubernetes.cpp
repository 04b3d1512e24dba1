#include <doctest/doctest.h>

#include "tests/provisioner/backends/kubernetes_scene.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;
using namespace glidepod::provisioner::kubernetes_test;

TEST_CASE("kubernetes: pods are made, found again over several pages, and removed") {
  Scene scene;
  CHECK(scene.look().pods.empty());
  for (const auto* name : {"a", "b", "c"}) CHECK(scene.create(name, {.cpus = 4}) == "");
  CHECK(scene.server.requests.back().target == "/api/v1/namespaces/ns/pods");
  const auto seen = scene.look();
  CHECK_FALSE(seen.blind);
  CHECK(seen.problems.empty());
  REQUIRE(seen.pods.size() == 3);
  CHECK(seen.pods[2].name == "c");
  CHECK(seen.pods[2].group.cpus == 4);
  CHECK(seen.pods[2].state == PodState::unschedulable);
  CHECK(seen.pods[2].image == "sfiligoi/prp-portal-wn");
  bool selected = false;
  for (const auto& request : scene.server.requests)
    selected = selected || request.target.find("labelSelector=prp-htcondor-portal%3Dwn%2Ck8s-app%3Dwn") !=
                               std::string::npos;
  CHECK(selected);
  CHECK(scene.remove("b") == "");
  CHECK(scene.remove("b") == "");
  CHECK(scene.look().pods.size() == 2);
}

TEST_CASE("kubernetes: a creation that is repeated makes one pod") {
  Scene scene;
  CHECK(scene.create("a") == "");
  CHECK(scene.create("a") == "");
  // The answer to the first attempt is lost.
  int attempts = 0;
  scene.instead = [&](const FakeServer::Request& request) -> std::optional<FakeServer::Reply> {
    if (request.method != "POST" || ++attempts > 1) return {};
    scene.answer(request);
    return FakeServer::Reply{"", true};
  };
  CHECK(scene.create("b") == "");
  CHECK(scene.pods.size() == 2);
}

TEST_CASE("kubernetes: what the server refuses is told in its words, at once, what may pass is repeated") {
  Scene scene;
  int attempts = 0;
  const auto first = [&](int code, const char* reason, const char* message, bool for_good) {
    attempts = 0;
    scene.instead = [=, &attempts](const FakeServer::Request& request) -> std::optional<FakeServer::Reply> {
      if (request.method != "POST" || (++attempts > 1 && !for_good)) return {};
      return FakeServer::json(code, Scene::status(code, reason, message));
    };
  };
  first(403, "Forbidden", "exceeded quota: pods", true);
  CHECK(scene.create("a") == "403 Forbidden: exceeded quota: pods");
  CHECK(attempts == 1);
  first(422, "Invalid", "spec.containers[0].image: Required value", true);
  CHECK(scene.create("a") == "422 Invalid: spec.containers[0].image: Required value");
  first(500, "InternalError", "etcd", false);
  CHECK(scene.create("a") == "");
  CHECK(attempts == 2);
}

TEST_CASE("kubernetes: only the pod that was seen is removed") {
  Scene scene;
  CHECK(scene.create("a") == "");
  scene.look();
  scene.pods["a"]["metadata"]["uid"] = "another";
  CHECK(scene.remove("a") == "409 Conflict: another uid");
  CHECK(scene.pods.size() == 1);
  // Nor is the very pod, if anything has happened to it since.
  scene.look();
  scene.pods["a"]["metadata"]["resourceVersion"] = "2";
  CHECK(scene.remove("a") == "409 Conflict: another resourceVersion");
  scene.look();
  CHECK(scene.remove("a") == "");
}

TEST_CASE("kubernetes: what became known after the look removes nothing") {
  Scene scene;
  scene.look();
  CHECK(scene.create("a") == "");
  CHECK(scene.remove("a") == "409 Conflict: another uid");
}

TEST_CASE("kubernetes: pods that wait and would now be made otherwise are told") {
  Scene scene;
  CHECK(scene.create("a") == "");
  CHECK(!scene.look().pods.at(0).outdated);
  const auto made_as = scene.pods["a"]["metadata"]["annotations"]["glidepod.io/made-as"];
  scene.pods["a"]["metadata"]["annotations"]["glidepod.io/made-as"] = "another";
  CHECK(scene.look().pods.at(0).outdated);
  scene.pods["a"]["metadata"]["annotations"].erase("glidepod.io/made-as");
  CHECK(!scene.look().pods.at(0).outdated);
  CHECK(made_as.get<std::string>().size() == 16);
}

TEST_CASE("kubernetes: a list that cannot be read is blindness, one pod that cannot is a problem") {
  Scene scene;
  CHECK(scene.create("a") == "");
  CHECK(scene.create("b") == "");
  scene.pods["a"]["metadata"]["labels"]["PodCPUs"] = "many";
  const auto seen = scene.look();
  CHECK(seen.pods.size() == 1);
  CHECK(seen.problems == std::vector<std::string>{"a: PodCPUs: 'many' is not a whole number"});
  scene.instead = [](const FakeServer::Request&) {
    return FakeServer::json(403, Scene::status(403, "Forbidden", "pods is forbidden"));
  };
  CHECK(scene.look().blind == "list of pods: 403 Forbidden: pods is forbidden");
  scene.instead = [](const FakeServer::Request&) { return FakeServer::json(200, "[]"); };
  CHECK(scene.look().blind == "list of pods: the answer is no list");
}

TEST_CASE("kubernetes: a list whose rest has expired is read again from its beginning") {
  Scene scene;
  for (const auto* name : {"a", "b"}) CHECK(scene.create(name) == "");
  int expired = 0;
  scene.instead = [&](const FakeServer::Request& request) -> std::optional<FakeServer::Reply> {
    if (request.target.find("continue=") == std::string::npos || ++expired > 1) return {};
    return FakeServer::json(410, Scene::status(410, "Expired", "too old"));
  };
  CHECK(scene.look().pods.size() == 2);
  expired = -100;
  const auto seen = scene.look();
  CHECK(seen.blind == "list of pods: 410 Expired: too old");
}

TEST_CASE("kubernetes: quotas each time, nodes now and then") {
  Scene scene;
  int nodes = 0;
  scene.instead = [&](const FakeServer::Request& request) -> std::optional<FakeServer::Reply> {
    if (request.target.ends_with("/resourcequotas"))
      return FakeServer::json(200,
                              R"({"items": [{"status": {"hard": {"pods": "10"}, "used": {"pods": "4"}}}]})");
    if (!request.target.starts_with("/api/v1/nodes")) return {};
    ++nodes;
    return FakeServer::json(200,
                            R"({"items": [{"status": {"allocatable": {"cpu": "8", "memory": "8Gi"}}}]})");
  };
  auto seen = scene.look();
  CHECK(seen.capacity.quota_left->pods == 6);
  CHECK(seen.capacity.nodes.size() == 1);
  scene.look(k_now + Seconds(120));
  CHECK(nodes == 1);
  scene.look(k_now + Seconds(700));
  CHECK(nodes == 2);
  Demand demand;
  demand.groups[{.cpus = 4}].idle = 1;
  scene.kubernetes->fit(demand, seen.capacity);
  CHECK(seen.capacity.needs.at({.cpus = 4}).cpu_milli == 3000);
}

TEST_CASE("kubernetes: a pod that an autoscaler makes a node for says so, for twenty minutes") {
  Scene scene;
  for (const auto* name : {"a", "b"}) REQUIRE(scene.create(name) == "");
  int asked = 0;
  std::string at = "2027-01-15T08:00:00Z";  // k_now
  scene.instead = [&](const FakeServer::Request& request) -> std::optional<FakeServer::Reply> {
    if (request.target.find("/events?") == std::string::npos) return {};
    ++asked;
    const auto event = [&at](const char* reason, const char* uid) {
      return Json{{"reason", reason},
                  {"message", "pod triggered scale-up: [{pool 1->2 (max: 9)}]"},
                  {"involvedObject", {{"kind", "Pod"}, {"uid", uid}}},
                  {"lastTimestamp", at}};
    };
    // An API that does not know the selector has others, too.
    Json list = {{"items", {event("TriggeredScaleUp", "uid-a"), event("NotTriggerScaleUp", "uid-b")}}};
    if (request.target.find("reason%3DTriggeredScaleUp") == std::string::npos) list["items"].clear();
    return FakeServer::json(200, list.dump());
  };
  const auto comes = [&scene](Seconds later) {
    std::string names;
    for (const auto& pod : scene.look(k_now + later).pods)
      if (pod.node_comes) names += pod.name.str() + ": " + pod.message.str() + "\n";
    return names;
  };
  CHECK(comes(Seconds(60)) == "a: TriggeredScaleUp: pod triggered scale-up: [{pool 1->2 (max: 9)}]\n");
  CHECK(asked == 2);
  // They are asked for now and then, not with each look.
  CHECK_FALSE(comes(Seconds(299)).empty());
  CHECK(asked == 2);
  CHECK_FALSE(comes(Seconds(300)).empty());
  CHECK(asked == 4);
  CHECK_FALSE(comes(Seconds(1200)).empty());
  CHECK(comes(Seconds(1201)).empty());
  at = "2027-01-15T08:19:00Z";
  CHECK_FALSE(comes(Seconds(1440)).empty());
}

TEST_CASE("kubernetes: without the right to list Events no node is known to come, and that is told once") {
  Scene scene;
  int asked = 0;
  scene.instead = [&](const FakeServer::Request& request) -> std::optional<FakeServer::Reply> {
    asked += request.target.find("/events?") != std::string::npos;
    return {};
  };
  scene.look();
  CHECK(asked == 0);  // no pod waits
  REQUIRE(scene.create("a") == "");
  for (const int later : {1, 2, 3}) CHECK_FALSE(scene.look(k_now + Seconds(later)).pods.at(0).node_comes);
  CHECK(asked == 1);
}

TEST_CASE("kubernetes: half of the nodes gone at once is believed after ten minutes") {
  Scene scene;
  int nodes = 8;
  scene.instead = [&](const FakeServer::Request& request) -> std::optional<FakeServer::Reply> {
    if (!request.target.starts_with("/api/v1/nodes")) return {};
    Json list = {{"items", Json::array()}};
    for (int i = 1; i <= nodes; ++i)
      list["items"].push_back({{"status", {{"allocatable", {{"cpu", std::to_string(i)}}}}}});
    return FakeServer::json(200, list.dump());
  };
  CHECK(scene.look().capacity.nodes.size() == 8);
  nodes = 4;
  for (const auto after : {700, 820, 1'299}) {
    const auto seen = scene.look(k_now + Seconds(after));
    CHECK(seen.capacity.nodes.size() == 8);
    CHECK(seen.problems ==
          std::vector<std::string>{"4 of 8 nodes are gone at once: this is believed after 600 s"});
  }
  CHECK(scene.look(k_now + Seconds(1'300)).capacity.nodes.size() == 4);
  nodes = 3;
  CHECK(scene.look(k_now + Seconds(2'000)).capacity.nodes.size() == 3);
}

TEST_CASE("kubernetes: a name that another group's pod has is an error, not a pod that was made") {
  Scene scene;
  CHECK(scene.create("a") == "");
  CHECK(scene.create("a") == "");  // an attempt whose answer was lost
  scene.pods["a"]["metadata"]["labels"]["PodCPUs"] = "7";
  CHECK(scene.create("a") == "of another group: 409 AlreadyExists: there");
}

TEST_CASE("kubernetes: its pilots' ads, and which jobs they take") {
  Scene scene;
  CHECK(scene.kubernetes->jobs_taken().empty());
  const auto pod =
      Json::parse(R"({"kind": "Pod", "spec": {"containers": [{"name": "pilot"}, {"name": "payload-0"}]}})");
  CHECK(Kubernetes(*scene.client, {}, PodMaker::create({}, &pod).value(), PodFeed::Mode::once).jobs_taken() ==
        container_jobs("", false));
  KubernetesSettings with_default;
  with_default.default_image = "docker://a:1";
  with_default.pilot_jobs = true;
  with_default.pod_lifetime = Seconds(7200);
  auto maker = PodMaker::create(with_default, &pod).value();
  CHECK(Kubernetes(*scene.client, with_default, maker, PodFeed::Mode::once).jobs_taken() ==
        container_jobs("docker://a:1", true, Seconds(7200)));
  // With an image store, also those whose image is a file.
  const auto with_store = Json::parse(
      R"({"kind": "Pod", "spec": {"containers": [{"name": "pilot", "env": [{"name": "GLIDEPOD_IMAGE_STORE", "value": "/s"}]},
                                                 {"name": "payload-0"}]}})");
  const auto taken = [&](const KubernetesSettings& settings, const Json& from) {
    return Kubernetes(*scene.client, settings, PodMaker::create(settings, &from).value(), PodFeed::Mode::once)
        .jobs_taken();
  };
  const auto files = container_jobs("", false, Seconds(0), ImageFiles::taken);
  CHECK(taken({}, with_store) == files);
  KubernetesSettings by_settings;
  by_settings.envs = {{"GLIDEPOD_IMAGE_STORE", "/s"}};
  CHECK(taken(by_settings, pod) == files);
  by_settings.envs.emplace_back("GLIDEPOD_CVMFS_IMAGES", "true");
  CHECK(taken(by_settings, pod) == container_jobs("", false, Seconds(0), ImageFiles::with_cvmfs));
  by_settings.envs = {{"GLIDEPOD_IMAGE_STORE", ""}};
  CHECK(taken(by_settings, with_store) == container_jobs("", false));
  by_settings.envs.clear();
  by_settings.image_store = "https://s:1";
  by_settings.image_store_repository = "r/f";
  CHECK(taken(by_settings, pod) == files);
  CHECK(scene.kubernetes->slot_constraint() ==
        "(K8SProvisionerType =?= \"PRPHTCondorProvisioner\") && (K8SProvisionerName =?= \"wn\") && "
        "(K8SNamespace =?= \"ns\") && (K8SDomain =?= \"optiputer.net\")");
}

TEST_CASE("kubernetes: events are of the pod that was seen, and where they may not be made nobody insists") {
  Scene scene;
  CHECK(scene.create("a") == "");
  scene.look();
  std::vector<Json> events;
  int refuse = 0;
  scene.instead = [&](const FakeServer::Request& request) -> std::optional<FakeServer::Reply> {
    if (request.target != "/api/v1/namespaces/ns/events") return std::nullopt;
    events.push_back(Json::parse(request.body));
    scene.loop.after(Milliseconds(20), [&] { scene.loop.stop(); });
    if (refuse != 0) return FakeServer::json(refuse, Scene::status(refuse, "Forbidden", "no"));
    return FakeServer::json(201, "{}");
  };
  const auto tell = [&](const char* pod) {
    scene.kubernetes->tell({pod, "GivenUp", "takes no more jobs", true}, k_now);
  };
  tell("somebody-else");
  tell("a");
  REQUIRE(scene.loop.run().ok());
  REQUIRE(events.size() == 1);
  CHECK(events[0]["metadata"]["name"].get<std::string>().starts_with("a."));
  CHECK(events[0]["involvedObject"]["uid"] == "uid-a");
  CHECK(events[0]["type"] == "Warning");
  CHECK(events[0]["reason"] == "GivenUp");
  CHECK(events[0]["message"] == "takes no more jobs");
  CHECK(events[0]["firstTimestamp"] == "2027-01-15T08:00:00Z");
  refuse = 403;
  tell("a");
  REQUIRE(scene.loop.run().ok());
  CHECK(events.size() == 2);
  tell("a");
  scene.look();
  CHECK(events.size() == 2);
}

TEST_CASE("kubernetes: new pods are kept from nodes, and made anew when they need not be any more") {
  Scene scene;
  scene.instead = [](const FakeServer::Request& request) -> std::optional<FakeServer::Reply> {
    if (!request.target.starts_with("/api/v1/nodes")) return std::nullopt;
    const Json one = {{"metadata", {{"name", "n1"}, {"labels", {{"kubernetes.io/hostname", "host1"}}}}}};
    const Json other = {{"metadata", {{"name", "n2"}, {"labels", {{"kubernetes.io/hostname", "n2"}}}}}};
    return FakeServer::json(200, Json{{"items", {one, other}}, {"metadata", Json::object()}}.dump());
  };
  scene.look();
  CHECK(scene.create("before") == "");
  scene.kubernetes->avoid({"n1", "n2", "n3"});
  CHECK(scene.create("kept") == "");
  const auto hosts =
      scene.pods["kept"]["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
                ["nodeSelectorTerms"][0]["matchExpressions"][0]["values"];
  CHECK(hosts == Json{"host1", "n2", "n3"});
  const auto outdated = [&] {
    std::string names;
    for (const auto& pod : scene.look().pods)
      if (pod.outdated) names += pod.name.str() + " ";
    return names;
  };
  CHECK(outdated() == "");
  scene.kubernetes->avoid({"n1", "n2", "n3", "n4"});
  CHECK(outdated() == "");
  scene.kubernetes->avoid({"n1", "n2"});
  CHECK(outdated() == "kept ");
}

TEST_CASE(
    "kubernetes: a pod is drained by an annotation, or has it when it is killed, whatever happened to it") {
  Scene scene;
  CHECK(scene.create("a") == "");
  scene.look();
  int code = 200;
  std::vector<std::string> asked;
  scene.instead = [&](const FakeServer::Request& request) -> std::optional<FakeServer::Reply> {
    if (request.method == "DELETE") asked.push_back(request.body);
    if (request.method != "PATCH") return {};
    CHECK(request.target.starts_with("/api/v1/namespaces/ns/pods/a?"));
    asked.push_back(request.body);
    scene.pods["a"]["metadata"]["resourceVersion"] = "2";
    return FakeServer::json(code,
                            code == 200 ? scene.pods["a"].dump() : Scene::status(code, "Forbidden", "no"));
  };
  const auto drain = [&](const char* pod, Drained::Mode mode) {
    return scene.end([&](auto done) { scene.kubernetes->drain({pod, "new disks", mode}, done); });
  };
  CHECK(drain("a", Drained::Mode::drain) == "");
  REQUIRE(asked.size() == 1);
  CHECK(
      Json::parse(asked[0]) ==
      Json::parse(R"({"metadata": {"uid": "uid-a", "annotations": {"glidepod.io/drained": "new disks"}}})"));
  CHECK(scene.pods.contains("a"));
  SUBCASE("as the provisioner may") {}
  SUBCASE("without the right to patch pods") {
    code = 403;
    CHECK(drain("a", Drained::Mode::drain).find("403") != std::string::npos);
    asked.pop_back();
  }
  CHECK(drain("a", Drained::Mode::kill) == "");
  REQUIRE(asked.size() == 3);
  CHECK(Json::parse(asked[2])["preconditions"] == Json{{"uid", "uid-a"}});
  CHECK(scene.pods.empty());
  CHECK(drain("gone", Drained::Mode::kill) == "");
}

TEST_CASE("kubernetes: after the clock was set back the nodes are read again") {
  Scene scene;
  const auto nodes = [&] {
    return std::ranges::count_if(scene.server.requests,
                                 [](const auto& r) { return r.target.starts_with("/api/v1/nodes"); });
  };
  scene.look();
  scene.look(k_now + Seconds(60));
  CHECK(nodes() == 1);
  scene.look(k_now - Seconds(86400));
  CHECK(nodes() == 2);
}
