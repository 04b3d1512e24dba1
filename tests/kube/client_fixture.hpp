#pragma once

#include <doctest/doctest.h>

#include "lib/base/file.hpp"
#include "lib/kube/client.hpp"
#include "tests/kube/fake_server.hpp"

namespace glidepod::kube {

inline std::string pod_json(const std::string& version) {
  return R"({"kind":"Pod","metadata":{"name":"p","resourceVersion":")" + version +
         R"("},"spec":{"containers":[]}})";
}
inline std::string status_json(int code, const std::string& reason, const std::string& message) {
  return fmt::format(R"({{"kind":"Status","code":{},"reason":"{}","message":"{}"}})", code, reason, message);
}
inline std::string event_json(const std::string& type, const std::string& object) {
  return R"({"type":")" + type + R"(","object":)" + object + "}\n";
}

struct Fixture {
  Loop loop = Loop::create().value();
  FakeServer server{loop};
  std::unique_ptr<Client> client =
      Client::create(loop, endpoint_in_pod(server.folder(), environment).value()).value();
  static constexpr const char* environment[] = {nullptr};
  const PodName pod{"ns", "p"};
  std::unique_ptr<Client::Operation> operation;
  std::optional<Result<Pod>> answer;
  std::vector<std::string> versions;
  std::vector<Failure> failures;
  int deleted = 0;

  void get(std::chrono::milliseconds deadline = std::chrono::seconds(20)) {
    operation = client->get(pod, std::chrono::steady_clock::now() + deadline, handler());
    run_until([this] { return answer.has_value(); });
  }
  PodHandler handler() {
    return [this](Result<Pod> got) { answer = std::move(got); };
  }
  void patch(const std::string& image) {
    operation = client->patch_image(pod, {1, "payload-0", "before:1", image},
                                    std::chrono::steady_clock::now() + std::chrono::seconds(5), handler());
    run_until([this] { return answer.has_value(); });
  }
  void watch(const std::string& version, Milliseconds silence = Milliseconds(60'000)) {
    operation = client->watch(
        pod, version,
        {[this](const Pod& seen) { versions.push_back(seen.resource_version); }, [this] { ++deleted; },
         [this](const Failure& failure) { failures.push_back(failure); }},
        silence);
  }
  template <typename Condition>
  void run_until(Condition condition) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!condition() && std::chrono::steady_clock::now() < until)
      REQUIRE(loop.run_once(Milliseconds(5'000)).ok());
    REQUIRE(condition());
  }
  void run_for(Milliseconds time) {
    const auto until = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < until) REQUIRE(loop.run_once(Milliseconds(5)).ok());
  }
  Failure failure() const { return Failure::of(answer->error()); }
};

}  // namespace glidepod::kube
