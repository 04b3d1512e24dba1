#include "tests/pilot-agent/core_harness.hpp"

using namespace glidepod;
using namespace glidepod::agent;

namespace {

// A young pod whose second container was made with image A; no agent was there before.
struct Scene : Harness {
  explicit Scene(const Policy& policy = {}, const std::string& image = k_image_a,
                 Core::Earlier earlier = Core::Earlier::none)
      : Harness(2, policy, 0, earlier, made_with(1, image)) {}
  int patches() const { return count<Patch>(); }
  void is_born() {
    hello(1);
    runs(1, k_image_a, "docker.io/library/a@" + k_digest_a);
  }
};

}  // namespace

TEST_CASE("born: the first Hello proves the image that the pod was made with, and a job finds it warm") {
  Scene s;
  s.hello(1);
  CHECK(s.state(1) == State::idle);
  const ClientId client = s.ask(k_image_a);
  CHECK(s.last<Launch>().client == client);
  CHECK(s.last<Launch>().glue == s.glue[1]);
  CHECK(s.noted("how=warm"));
  CHECK(s.patches() == 0);
}

TEST_CASE("born: a Hello that comes before the pod is known is as good") {
  kube::Pod pod;
  pod.resource_version = "1";
  pod.containers = {{"pilot", "reg.example/pilot:1", {}}, {"payload-0", "a:1", {"/glidepod/bin/glue"}}};
  Core core(Policy{}, {"payload-0"});
  const Time now{1000s};
  core.on_hello(1, "payload-0", "id", now);
  core.on_first_pod(pod, Core::Earlier::none, now);
  // The pod need not name it in full.
  core.on_bind({.client = 2, .asked = Image(k_image_a), .owner = "alice"}, now);
  CHECK(std::ranges::any_of(core.take_actions(),
                            [](const Action& action) { return std::holds_alternative<Launch>(action); }));
}

TEST_CASE("born: nobody has used it, so it may serve any owner, and then only that one") {
  Scene s;
  s.is_born();
  s.ask(k_image_a, wire::Verb::exec, "alice");
  s.end_job(1);
  CHECK(s.patches() == 0);
  s.ask(k_image_a, wire::Verb::exec, "bob");
  CHECK(s.patches() == 1);
}

TEST_CASE(
    "born: another image is not proven by it, and takes the container that was born on the pilot's own") {
  Scene s;
  s.is_born();
  s.ask(k_image_b);
  CHECK(s.last<Patch>().container == "payload-0");
  CHECK(s.state(1) == State::idle);
}

TEST_CASE("born: after an agent before this one a Hello proves nothing") {
  Scene s({}, k_image_a, Core::Earlier::some);
  s.hello(1);
  CHECK(s.state(1) == State::switching);
  s.ask(k_image_a);
  CHECK(s.count<Launch>() == 0);
}

TEST_CASE("born: once it was patched the first Hello proves nothing") {
  Scene s;
  s.waits(1, "ErrImagePull", "i/o timeout");
  REQUIRE(s.state(1) == State::switching);
  s.patched();
  s.hello(1);  // the pull had worked at last, or it has not
  CHECK(s.state(1) == State::switching);
  s.status(1).image = k_image_a;
  s.status(1).image_id = "docker.io/library/a@" + k_digest_a;
  s.status(1).container_id = "test://" + s.id(1);
  s.status(1).state = ContainerStatus::State::running;
  s.tell();
  CHECK(s.state(1) == State::switching);
  s.goodbye(1);
  s.hello(1);
  s.runs_home(1);
  CHECK(s.state(1) == State::idle);
}

TEST_CASE("born: one whose image cannot be had goes home at once, and it is nobody's failure") {
  for (const auto* reason : {"ErrImagePull", "InvalidImageName", "CreateContainerError"}) {
    Policy policy;
    policy.give_up_after = 1;
    Scene s(policy);
    CHECK(s.core.watching());
    s.waits(1, reason, "no such thing");
    CHECK(s.noted("event=not_born container=payload-1 image=" + k_image_a));
    REQUIRE(s.patches() == 1);
    CHECK(s.last<Patch>().container == "payload-1");
    CHECK(s.last<Patch>().image.starts_with("reg.example/pilot:"));
    CHECK(s.count<GiveUp>() == 0);
    // Others are not held up by it.
    const ClientId client = s.ask(k_image_b);
    CHECK(s.last<Patch>().container == "payload-0");
    s.switch_to(0, k_image_b, k_digest_b);
    CHECK(s.last<Launch>().client == client);
  }
}

TEST_CASE("born: one that is being pulled is let be, but not for ever") {
  Scene s;
  s.waits(1, "ContainerCreating", "");
  CHECK(s.core.containers().expects_births());
  s.pass(599s);
  CHECK(s.patches() == 0);
  CHECK(s.state(1) == State::absent);
  s.pass(1s);
  CHECK(s.patches() == 1);
  CHECK(s.state(1) == State::switching);
  CHECK_FALSE(s.core.containers().expects_births());
}

TEST_CASE("born: the status tells its digest, so that the next start of it need not wait") {
  Scene s;
  s.is_born();
  CHECK(s.noted("event=digest image=" + k_image_a));
  CHECK_FALSE(s.core.watching());
  s.ask(k_image_a, wire::Verb::exec, "alice");
  s.end_job(1);
  s.ask(k_image_a, wire::Verb::exec, "bob");
  CHECK(s.last<Patch>().image.find("@" + k_digest_a) != std::string::npos);
}

TEST_CASE("born: one whose status shows the pilot's own image is used by nobody") {
  Scene s;
  s.hello(1);
  s.runs_home(1);
  CHECK(s.noted("event=doubtful container=payload-1"));
  s.ask(k_image_a);
  CHECK(s.count<Launch>() == 0);
  CHECK(s.patches() == 1);
}

TEST_CASE("born: one that ends and starts again has its image still") {
  Scene s;
  s.is_born();
  s.lose(1);
  s.hello(1);
  CHECK(s.state(1) == State::idle);
  s.ask(k_image_a);
  CHECK(s.noted("how=warm"));
}

TEST_CASE("born: the test switch leaves it alone") {
  Policy policy;
  policy.first = Policy::First::prove;
  Scene s(policy);
  CHECK(s.last<Patch>().container == "payload-0");
  // Also where that one was tried last.
  Harness again(2, policy, 0, Core::Earlier::none, made_with(0, k_image_a));
  CHECK(again.last<Patch>().container == "payload-1");
  again.patch_failed(403);
  again.hello(0);
  again.pass(11s);
  CHECK(again.count<Patch>() == 2);
  CHECK(again.last<Patch>().container == "payload-1");
}

TEST_CASE("born: its image is on the node, so nobody is asked to pull it") {
  Policy policy;
  policy.pullers = true;
  Scene s(policy);
  s.is_born();
  s.ask(k_image_a, wire::Verb::exec, "alice");
  s.ask(k_image_a, wire::Verb::exec, "bob");
  CHECK(s.count<Want>() == 0);
  CHECK(s.patches() == 1);
}

TEST_CASE("born: at the pilot's end one that is still being pulled is told the pilot's own image") {
  Scene s;
  s.waits(1, "ContainerCreating", "");
  s.core.call_home(s.now);
  s.take();
  REQUIRE(s.patches() == 1);
  CHECK(s.last<Patch>().container == "payload-1");
  CHECK(s.last<Patch>().image.starts_with("reg.example/pilot:"));
  CHECK(s.core.containers().missing() == std::vector<std::string>{"payload-1"});
}

TEST_CASE("born: a status that comes before the Hello tells its digest as well") {
  Scene s;
  s.runs(1, k_image_a, "docker.io/library/a@" + k_digest_a);
  CHECK_FALSE(s.noted("event=digest"));
  s.hello(1);
  CHECK(s.noted("event=digest image=" + k_image_a));
}

TEST_CASE("born: a pilot that is called home takes no job") {
  Scene s;
  s.core.call_home(s.now);
  s.ask(k_image_b);
  CHECK(s.last<Fail>().message == "the pilot is ending");
}

TEST_CASE("born: the test switch is made where no job is") {
  Policy policy;
  policy.first = Policy::First::prove;
  Harness h(2, policy);
  h.patch_failed(403);
  h.now += 5s;
  h.ask("reg.example/pilot:1");
  REQUIRE(h.state(0) == State::running);
  for (int i = 0; i < 2; ++i) {
    h.pass(i == 0 ? 5s : 10s);
    CHECK(h.last<Patch>().container == "payload-1");
    h.patch_failed(403);
  }
  CHECK(h.count<Patch>() == 3);
  CHECK(h.state(0) == State::running);
}
