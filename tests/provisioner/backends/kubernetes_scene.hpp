#pragma once

#include <doctest/doctest.h>

#include "provisioner/backends/kubernetes.hpp"
#include "provisioner/service/api_counts.hpp"
#include "tests/kube/fake_server.hpp"

namespace glidepod::provisioner::kubernetes_test {

using kube::FakeServer;

inline constexpr Time k_now{Seconds(1'800'000'000)};

// A Kubernetes of a few lines that keeps its pods.
struct Scene {
  Loop loop = Loop::create().value();
  FakeServer server{loop};
  std::unique_ptr<kube::Client> client;
  ApiCounts counts;
  KubernetesSettings settings;
  std::optional<PodMaker> maker;
  std::unique_ptr<Kubernetes> kubernetes;
  std::map<std::string, Json> pods;
  std::function<std::optional<FakeServer::Reply>(const FakeServer::Request&)> instead;

  explicit Scene(const Json* pod_template = nullptr, bool born_ready = false,
                 std::optional<std::int64_t> warm = std::nullopt) {
    client = kube::Client::create(loop, {"http://localhost", server.socket(), {}, {}}).value();
    settings.name_space = "ns";
    settings.app_name = "wn";
    settings.born_ready = born_ready;
    settings.warm = warm;
    maker = PodMaker::create(settings, pod_template).value();
    restart();
    client->observe(counts.observer());
    server.on_request = [this](const FakeServer::Request& request) {
      // Of pullers test_pullers.cpp tells; here there are none.
      if (request.target.find("glidepod-puller") != std::string::npos)
        return FakeServer::json(200, R"({"items": [], "metadata": {}})");
      const auto other = instead ? instead(request) : std::nullopt;
      return other ? *other : answer(request);
    };
  }
  // As another process with the same settings.
  void restart() {
    kubernetes = std::make_unique<Kubernetes>(*client, settings, *maker, PodFeed::Mode::followed);
  }
  static std::string status(int code, const char* reason, const std::string& message) {
    return Json{{"kind", "Status"}, {"code", code}, {"reason", reason}, {"message", message}}.dump();
  }
  FakeServer::Reply answer(const FakeServer::Request& request) {
    const auto path = request.target.substr(0, request.target.find('?'));
    if (path.ends_with("/resourcequotas") || path == "/api/v1/nodes" ||
        (path.ends_with("/events") && request.method == "GET"))
      return FakeServer::json(403, status(403, "Forbidden", "no"));
    if (request.method == "POST") {
      auto pod = Json::parse(request.body);
      const std::string name = pod["metadata"]["name"];
      if (pods.contains(name)) return FakeServer::json(409, status(409, "AlreadyExists", "there"));
      pod["metadata"]["uid"] = "uid-" + name;
      pod["metadata"]["resourceVersion"] = "1";
      pod["status"] = {{"phase", "Pending"}};
      pods[name] = pod;
      return FakeServer::json(201, pod.dump());
    }
    if (request.method == "DELETE") {
      const auto name = path.substr(path.rfind('/') + 1);
      if (!pods.contains(name)) return FakeServer::json(404, status(404, "NotFound", "gone"));
      const auto options = Json::parse(request.body);
      for (const auto& [key, value] : options["preconditions"].items())
        if (value != pods[name]["metadata"][key])
          return FakeServer::json(409, status(409, "Conflict", "another " + key));
      pods.erase(name);
      return FakeServer::json(200, "{}");
    }
    // The provisioner's Role has no get.
    if (!path.ends_with("/pods")) return FakeServer::json(403, status(403, "Forbidden", "no"));
    const std::string by_name = "fieldSelector=metadata.name%3D";
    if (const auto at = request.target.find(by_name); at != std::string::npos) {
      const auto one = pods.find(request.target.substr(at + by_name.size()));
      Json list = {{"items", Json::array()}, {"metadata", Json::object()}};
      if (one != pods.end()) list["items"].push_back(one->second);
      return FakeServer::json(200, list.dump());
    }
    // One pod a page.
    auto next = pods.begin();
    const auto from = request.target.find("continue=");
    if (from != std::string::npos) next = pods.find(request.target.substr(from + 9));
    Json list = {{"items", Json::array()}, {"metadata", Json::object()}};
    if (next != pods.end()) list["items"].push_back(next->second);
    if (next != pods.end() && std::next(next) != pods.end())
      list["metadata"]["continue"] = std::next(next)->first;
    return FakeServer::json(200, list.dump());
  }
  Seen look(Time now = k_now) {
    Seen result;
    kubernetes->look(now, [&](Seen seen) {
      result = std::move(seen);
      loop.stop();
    });
    REQUIRE(loop.run().ok());
    return result;
  }
  std::string end(const std::function<void(std::function<void(Result<void>)>)>& action) {
    std::string result = "?";
    action([&](const Result<void>& done) {
      result = done.ok() ? "" : done.error().message();
      loop.stop();
    });
    REQUIRE(loop.run().ok());
    return result;
  }
  std::string create(const std::string& name, const Group& group = {}) {
    return end([&](auto done) { kubernetes->create(group, name, done); });
  }
  std::string remove(const std::string& name) {
    return end([&](auto done) { kubernetes->remove(name, done); });
  }
};

}  // namespace glidepod::provisioner::kubernetes_test
