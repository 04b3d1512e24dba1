// Payload containers that the kubelet starts again however they have ended, and ends after the pilot.
#include <csignal>

#include "tests/pilot-agent/core_harness.hpp"

using namespace glidepod;
using namespace glidepod::agent;

namespace {
void as_sidecars(kube::Pod& pod) {
  for (auto& container : pod.containers) container.sidecar = container.name.starts_with("payload-");
}
Harness sidecars(int count = 1) {
  return Harness(count, {}, 0, Core::Earlier::none, as_sidecars);
}
}  // namespace

TEST_CASE("sidecars: are switched as other containers are") {
  Harness h = sidecars(2);
  CHECK(h.core.containers().size() == 2);
  CHECK(h.core.containers().has_sidecars());
  const ClientId client = h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  CHECK(h.last<Launch>().client == client);
}

TEST_CASE("sidecars: one that is told to have ended well comes again, and is no reason to give up") {
  const auto ends_well = [](Harness& h) {
    h.status(0).state = ContainerStatus::State::terminated;
    h.status(0).terminated = kube::Termination{};
    h.tell();
    return h.count<GiveUp>();
  };
  Harness other;
  CHECK(ends_well(other) == 1);
  Harness h = sidecars();
  CHECK(ends_well(h) == 0);
}

// While the last sidecar does not run, the kubelet does not see that the pilot has ended.
TEST_CASE("sidecars: all of them must run when the pilot ends, and then the kubelet ends them") {
  Harness h = sidecars(3);
  h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  h.ask(k_image_b);
  h.patched();
  h.goodbye(1);
  h.waits(1, "ErrImagePull", "429 Too Many Requests");
  h.core.call_home(h.now);
  h.take();
  CHECK(h.last<Patch>().container == "payload-1");
  CHECK(h.last<Patch>().image.starts_with("reg.example/pilot:"));
  CHECK(h.core.containers().missing() == std::vector<std::string>{"payload-1"});
  h.patched();
  h.hello(1);
  CHECK(h.core.containers().missing().empty());
  h.core.finish(h.now);
  h.take();
  // Their jobs end now. Glue that was told to finish would be started again.
  CHECK(h.last<SignalJob>().number == SIGKILL);
  CHECK(h.count<FinishGlue>() == 0);
  CHECK_FALSE(h.core.containers().ending());
  CHECK(h.core.containers().unended().empty());
}

TEST_CASE("sidecars: only other payload containers need a pod that starts them again") {
  Harness h = sidecars();
  kube::Pod pod = h.pod;
  pod.containers.push_back({.name = "mesh-proxy", .image = "reg.example/proxy:1", .sidecar = true});
  CHECK_FALSE(h.core.containers().needs_restarts(pod));
  CHECK(h.core.containers().others(pod).empty());
  CHECK_FALSE(Core(Policy{}, {"payload-0"}).containers().needs_restarts(pod));
  pod.containers[1].sidecar = false;
  CHECK(h.core.containers().needs_restarts(pod));
  CHECK(Core(Policy{}, {"payload-0"}).containers().needs_restarts(pod));
  pod.containers[2].sidecar = false;
  CHECK(h.core.containers().others(pod) == std::vector<std::string>{"mesh-proxy"});
}
