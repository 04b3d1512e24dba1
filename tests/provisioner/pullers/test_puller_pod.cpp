#include "provisioner/pullers/puller_pod.hpp"

#include <doctest/doctest.h>

using namespace glidepod;
using namespace glidepod::provisioner;
using Told = kube::PulledImage::State;

namespace {

Json made(const PullKey& key = {"node-1", "docker.io/library/a:1", "Always", {"s1", "s2"}}) {
  return make_puller({key, "wn-pull-1", "reg.example/pilot:1"}, {"ns", "wn", 600, false});
}

// As the API shows it with this state of its container.
Puller shown(const Json& state, const std::string& phase = "Pending", const std::string& image_id = "") {
  Json pod = made();
  pod["metadata"]["uid"] = "u-1";
  pod["status"] = {{"phase", phase},
                   {"containerStatuses", {{{"name", "pull"}, {"state", state}, {"imageID", image_id}}}}};
  return read_puller(pod);
}
Puller waits(const std::string& reason, const std::string& message = "words") {
  return shown({{"waiting", {{"reason", reason}, {"message", message}}}});
}

Json pilot() {
  return Json::parse(R"({
    "metadata": {"name": "p", "uid": "u", "resourceVersion": "7", "annotations": {
      "glidepod.io/wanted-images": "[{\"image\": \"a\", \"ask\": \"x\"}]"}},
    "spec": {"nodeName": "n1", "imagePullSecrets": [{"name": "s"}], "containers": [
      {"name": "pilot", "image": "pilot:1", "imagePullPolicy": "IfNotPresent"},
      {"name": "payload-0", "image": "pilot:1", "imagePullPolicy": "Always"}]},
    "status": {"phase": "Running"}})");
}

}  // namespace

TEST_CASE("puller pod: Guaranteed, it requests what it may use") {
  const Json pod = make_puller({{"n", "a:1", "", {}}, "wn-pull-1", "pilot:1"}, {"ns", "wn", 600, true});
  for (const auto* lists : {"initContainers", "containers"}) {
    const Json& resources = pod["spec"][lists][0]["resources"];
    CHECK(resources["limits"]["memory"] == "64Mi");
    CHECK(resources["requests"] == resources["limits"]);
  }
}

TEST_CASE("puller pod: it is where its pilot is, and has nothing of value") {
  const Json pod = made();
  const Json& spec = pod["spec"];
  CHECK(spec["nodeName"] == "node-1");
  CHECK(spec["automountServiceAccountToken"] == false);
  CHECK_FALSE(spec.contains("serviceAccountName"));
  CHECK_FALSE(pod["metadata"].contains("ownerReferences"));
  CHECK(spec["restartPolicy"] == "Never");
  CHECK(spec["activeDeadlineSeconds"] == 600);
  CHECK(spec["imagePullSecrets"] == Json::parse(R"([{"name": "s1"}, {"name": "s2"}])"));
  CHECK(spec["volumes"].size() == 1);
  CHECK(spec["volumes"][0].contains("emptyDir"));
  CHECK(spec["containers"][0]["image"] == "docker.io/library/a:1");
  CHECK(spec["containers"][0]["imagePullPolicy"] == "Always");
  // What runs is ours, from a folder that the image cannot write.
  CHECK(spec["containers"][0]["command"] == Json::parse(R"(["/glidepod/bin/glue", "--version"])"));
  CHECK(spec["containers"][0]["volumeMounts"][0]["mountPath"] == "/glidepod/bin");
  CHECK(spec["containers"][0]["volumeMounts"][0]["readOnly"] == true);
  CHECK(spec["initContainers"][0]["image"] == "reg.example/pilot:1");
  CHECK_FALSE(made({"n", "a", "", {}})["spec"]["containers"][0].contains("imagePullPolicy"));
}

TEST_CASE("puller pod: it fits Pod Security restricted") {
  const Json spec = made()["spec"];
  CHECK(spec["securityContext"]["runAsNonRoot"] == true);
  CHECK(spec["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault");
  for (const auto* lists : {"initContainers", "containers"})
    for (const auto& container : spec[lists]) {
      CHECK(container["securityContext"]["allowPrivilegeEscalation"] == false);
      CHECK(container["securityContext"]["capabilities"] == Json::parse(R"({"drop": ["ALL"]})"));
      CHECK(container["resources"]["limits"].contains("memory"));
      CHECK_FALSE(container.contains("env"));
    }
  for (const auto* field : {"hostNetwork", "hostPID", "hostIPC"}) CHECK_FALSE(spec.contains(field));
}

TEST_CASE("puller pod: its image is there as soon as anything but the pull is told of it") {
  CHECK(shown(Json::object()).state == Told::pulling);
  CHECK(waits("PodInitializing").state == Told::pulling);
  CHECK(waits("ContainerCreating").state == Told::pulling);
  CHECK(waits("CreateContainerError").state == Told::ready);
  CHECK(waits("RunContainerError").state == Told::ready);
  CHECK(shown({{"running", Json::object()}}, "Running").state == Told::ready);
  CHECK(shown({{"terminated", {{"reason", "StartError"}}}}, "Failed").state == Told::ready);
  CHECK(shown(Json::object(), "Succeeded").state == Told::ready);
  for (const char* reason : {"ErrImagePull", "ImagePullBackOff", "InvalidImageName"}) {
    const Puller puller = waits(reason, "manifest unknown");
    CHECK(puller.state == Told::failed);
    CHECK(puller.reason == reason);
    CHECK(puller.message == "manifest unknown");
  }
}

TEST_CASE("puller pod: one that has failed without its image is lost") {
  CHECK(shown(Json::object(), "Failed").state == Told::lost);
  CHECK(shown({{"waiting", {{"reason", "ImagePullBackOff"}}}}, "Failed").state == Told::lost);
  CHECK(shown({{"terminated", {{"reason", "ContainerStatusUnknown"}}}}, "Failed").state == Told::lost);
  CHECK_FALSE(shown(Json::object()).ending);
  CHECK(read_puller(Json("nonsense")).name.empty());
}

TEST_CASE("puller pod: a pilot that wants something") {
  const auto wants = read_pulling_pilot(pilot());
  REQUIRE(wants.has_value());
  CHECK(wants->node == "n1");
  CHECK(wants->secrets == std::vector<std::string>{"s"});
  CHECK(wants->policy == "Always");
  CHECK(wants->pilot_image == "pilot:1");
  CHECK(wants->wanted.size() == 1);
  CHECK(wants->version == 7);
  // Pending, too, is a pod of which a payload container has yet to start; only an agent at work asks.
  Json pending = pilot();
  pending["status"]["phase"] = "Pending";
  CHECK(read_pulling_pilot(pending).has_value());
}

TEST_CASE("puller pod: a pilot that wants nothing, is over or has no node") {
  Json pod = pilot();
  SUBCASE("nothing") {
    pod["metadata"].erase("annotations");
  }
  SUBCASE("nonsense") {
    pod["metadata"]["annotations"]["glidepod.io/wanted-images"] = "[[[";
  }
  SUBCASE("far too much") {
    std::string text = "[";
    for (int i = 0; i < 10'000; ++i) text += R"({"image": "a", "ask": "x"},)";
    pod["metadata"]["annotations"]["glidepod.io/wanted-images"] = text + R"({"image": "a", "ask": "x"}])";
  }
  SUBCASE("hostile names") {
    pod["metadata"]["annotations"]["glidepod.io/wanted-images"] =
        R"([{"image": "../../etc", "ask": "x"}, {"image": "a\nb", "ask": "x"}, {"image": "a", "ask": "\"}"}])";
  }
  SUBCASE("ended") {
    pod["status"]["phase"] = "Succeeded";
  }
  SUBCASE("not yet running") {
    pod["status"]["phase"] = "Pending";
    pod["metadata"]["annotations"].erase("glidepod.io/wanted-images");
    pod["metadata"]["annotations"]["glidepod.io/pulled-images"] =
        R"([{"image": "a", "ask": "x", "state": "ready"}])";
  }
  SUBCASE("ending") {
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  }
  SUBCASE("no node") {
    pod["spec"].erase("nodeName");
  }
  SUBCASE("no pod") {
    pod = Json::array();
  }
  CHECK_FALSE(read_pulling_pilot(pod).has_value());
}
