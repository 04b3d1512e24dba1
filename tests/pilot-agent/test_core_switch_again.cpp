// What starts again, agents and containers, and what an answer or a trouble that comes late or is over says
// of a switch.

#include "tests/pilot-agent/core_harness.hpp"

using namespace glidepod;
using namespace glidepod::agent;

TEST_CASE("switch: an agent that starts again leads every container home before its first use") {
  Harness h(2, {}, 1);
  CHECK(h.state(0) == State::switching);
  CHECK(h.state(1) == State::switching);
  CHECK(h.count<Patch>() == 2);
  h.patched_attempt(1);
  // What is connected runs the pilot's own image, but is to be stopped for the patch.
  CHECK(h.state(0) == State::switching);
  h.goodbye(0);
  h.hello(0);
  CHECK(h.state(0) == State::switching);
  h.runs_home(0);
  CHECK(h.state(0) == State::idle);
  CHECK(h.state(1) == State::switching);
}

TEST_CASE("switch: an earlier agent counts though the status does not tell of it yet") {
  Harness h(1, {}, 0, Core::Earlier::some);
  CHECK(h.state() == State::switching);
  CHECK(h.last<Patch>().image.starts_with(k_home_tag));
}

TEST_CASE("switch: a young pod's empty status is no obstacle") {
  kube::Pod pod;
  pod.containers = {{"pilot", "reg.example/pilot:1", {}}, {"payload-0", "reg.example/pilot:1", {"/x/glue"}}};
  Harness h(0);
  h.restart();
  h.hello();
  h.core.on_first_pod(pod, Core::Earlier::none, h.now);
  CHECK(h.state() == State::idle);
  h.add("payload-0", "reg.example/pilot:1", {"/x/glue"}, 0);
  h.ask(k_image_a);
  CHECK(h.last<Patch>().image == k_image_a);
  h.patched();
  h.goodbye();
  h.waits(0, "ErrImagePull", "manifest unknown");
  // Told of meanwhile.
  CHECK(h.last<Patch>().image == k_home_tag + "1@" + k_digest_home);
}

TEST_CASE("switch: an idle container that starts again is of the same image, and fresh") {
  Harness h;
  h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  h.end_job(0, ExitStatus::exited(0), false);
  h.lose();
  CHECK(h.state() == State::absent);
  h.hello();
  h.cleared();
  h.ask(k_image_a, wire::Verb::exec, "bob");
  CHECK(h.noted("how=warm"));
}

TEST_CASE("switch: of a container that starts by itself the status may come before the Hello") {
  Harness h;
  h.goodbye();
  h.runs_home(0);
  CHECK(h.state() == State::absent);
  h.hello();
  CHECK(h.state() == State::idle);
}

TEST_CASE("switch: a container that starts by itself and shows another image is told the pilot's own") {
  Harness h;
  h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  h.end_job();
  h.goodbye();
  h.hello();
  h.runs(0, k_image_b, "docker.io/library/b@" + k_digest_b);
  CHECK(h.state() == State::switching);
  h.pass(10s);
  CHECK(h.last<Patch>().image.starts_with(k_home_tag));
  h.patched();
  h.goodbye();
  h.hello();
  h.runs_home(0);
  CHECK(h.state() == State::idle);
}

TEST_CASE("switch: what the API refuses half-way leaves the container at home") {
  Harness h;
  h.ask(k_image_a);
  h.patched("mirror.example/a:1");  // whose names teach nothing
  h.goodbye();
  h.hello();
  h.runs(0, "other.example/a:1", "other.example/a@" + k_digest_a);
  h.end_job();
  h.ask(k_image_a, wire::Verb::exec, "bob");
  CHECK(h.last<Patch>().image.starts_with(k_home_tag));
  h.patched();
  h.goodbye();
  h.hello();
  REQUIRE(h.last<Patch>().image == k_image_a);
  const int patches = h.count<Patch>();
  h.patch_failed(403);
  CHECK(h.state() == State::idle);
  CHECK(h.count<Patch>() == patches);
}

TEST_CASE("switch: an answer from an API server that is behind does not delay what the status has proven") {
  Harness h;
  h.ask(k_image_a);
  h.goodbye();
  h.hello();
  h.pod.resource_version = "9";
  h.runs(0, k_image_a, "docker.io/library/a@" + k_digest_a);
  CHECK(h.count<Launch>() == 0);
  h.pod.resource_version = "8";
  h.patched();
  CHECK(h.count<Launch>() == 1);
}

TEST_CASE(
    "switch: an answer that the status has overtaken leaves nobody waiting for the container that it frees") {
  Harness h(1, {}, 1);
  h.goodbye();
  h.hello();
  h.pod.resource_version = "9";
  h.runs_home(0);
  h.ask(k_image_a);
  CHECK(h.count<Patch>() == 1);
  h.pod.resource_version = "8";
  h.patched();
  CHECK(h.last<Patch>().image == k_image_a);
}

TEST_CASE("switch: trouble that is over limits nothing, and trouble anew begins anew") {
  Harness h;
  const ClientId client = h.ask(k_image_a);
  h.patched();
  h.goodbye();
  h.waits(0, "ErrImagePull", "dial tcp: i/o timeout");
  CHECK(h.noted("event=trouble container=payload-0 image=" + k_image_a +
                " job=1.0 reason=\"dial tcp: i/o timeout\""));
  h.pass(110s);
  h.runs(0, k_image_a, "docker.io/library/a@" + k_digest_a);  // its glue has yet to be heard
  h.pass(20s);
  CHECK(h.count<Fail>() == 0);
  SUBCASE("it comes") {
    h.hello();
    CHECK(h.last<Launch>().client == client);
  }
  SUBCASE("it has ended again") {
    h.waits(0, "ErrImagePull", "dial tcp: i/o timeout");
    h.pass(119s);
    CHECK(h.count<Fail>() == 0);
    h.pass(1s);
    CHECK(h.last<Fail>().client == client);
  }
}

namespace {
// Bob asks for an image whose digest is not known, where alice has used it: by way of home.
void ask_by_way_of_home(Harness& h) {
  h.ask(k_image_a);
  h.patched();
  h.goodbye();
  h.hello();
  h.runs(0, "other.example/a:1", "other.example/a@" + k_digest_a);
  h.end_job();
  h.ask(k_image_a, wire::Verb::exec, "bob");
  REQUIRE(h.last<Patch>().image.starts_with(k_home_tag));
}
}  // namespace

TEST_CASE("switch: trouble on the way home is not that of the image, and limits nothing on the way to it") {
  Harness h;
  ask_by_way_of_home(h);
  h.patched();
  h.goodbye();
  h.waits(0, "CreateContainerError", "context deadline exceeded");
  h.pass(119s);
  h.hello();
  REQUIRE(h.last<Patch>().image == k_image_a);
  CHECK(h.core.snapshot().containers[0].trouble.empty());
  h.pass(1s);
  CHECK(h.count<Fail>() == 0);
  h.patched();
  h.goodbye();
  h.waits(0, "ErrImagePull", "dial tcp: i/o timeout");
  h.pass(119s);
  CHECK(h.count<Fail>() == 0);
  h.pass(1s);
  CHECK(h.count<Fail>() == 1);
}

TEST_CASE("switch: that the API took the way home says nothing of the way on") {
  Harness h;
  ask_by_way_of_home(h);
  const int launches = h.count<Launch>();
  h.patched();
  for (int i = 0; i < 2; ++i) {
    h.goodbye();
    h.hello();
  }
  CHECK(h.last<Patch>().image == k_image_a);
  CHECK(h.count<Launch>() == launches);
}

TEST_CASE("switch: a glue that connects again is still of the container before") {
  Harness h;
  h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  h.end_job();
  h.goodbye();  // nobody here has stopped it, so only the status proves what comes
  h.hello();
  h.runs(0, k_image_a, "docker.io/library/a@" + k_digest_a);
  h.ask(k_image_a);
  h.end_job();
  const int launches = h.count<Launch>();
  h.ask(k_image_a, wire::Verb::exec, "bob");
  h.patched();
  h.core.on_glue_lost(h.glue[0], h.now);  // only its connection
  h.hello();
  h.tell();
  CHECK(h.count<Launch>() == launches);
  h.goodbye();
  h.hello();
  h.runs(0, k_image_a, "docker.io/library/a@" + k_digest_a);
  CHECK(h.count<Launch>() == launches + 1);
}

TEST_CASE("switch: a glue that takes its time to go is waited for") {
  Harness h;
  h.ask(k_image_a);
  h.patched();
  h.tell();
  h.pass(200s);
  CHECK(h.count<Patch>() == 1);
  h.goodbye();
  h.hello();
  CHECK(h.count<Launch>() == 1);
}

TEST_CASE("switch: what shows the same content by another digest is no doubt, as often as it starts") {
  Harness h;  // a name by the digest of an index, where the status tells that of one platform
  const std::string named = "docker.io/library/a@" + k_digest_a;
  for (const char* owner : {"alice", "bob"}) {
    h.ask(named, wire::Verb::exec, owner);
    h.switch_to(0, "docker.io/library/a:1", k_digest_b);
    CHECK(h.state() == State::running);
    h.end_job();
  }
  CHECK_FALSE(h.noted("event=doubtful"));
  CHECK_FALSE(h.noted("event=home"));
}

TEST_CASE("switch: a container of which nothing is known may lose its glue") {
  Harness h;
  h.ask(k_image_a);
  h.patch_failed(0);
  h.patch_failed(403);
  REQUIRE(h.state() == State::broken);
  h.lose();
  CHECK(h.state() == State::broken);
}

TEST_CASE("switch: one that starts again at home, while the kubelet may act on more, is looked at again") {
  Harness h;
  h.ask(k_image_a);
  h.patched();
  h.lose();
  h.hello();
  h.runs(0, "docker.io/library/alias:2", "docker.io/library/alias@" + k_digest_a);
  h.pass(10s);
  h.patched();
  h.goodbye();
  h.hello();
  h.runs_home(0);
  REQUIRE(h.core.snapshot().containers[0].step == "calm by status");
  const int patches = h.count<Patch>();
  h.goodbye();
  h.hello();
  h.pass(90s);
  CHECK(h.count<Patch>() == patches);
  h.runs_home(0);
  h.pass(90s);
  CHECK(h.last<Patch>().image == k_image_a);
}
