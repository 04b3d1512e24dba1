#include "tests/pilot-agent/core_harness.hpp"

using namespace glidepod;
using namespace glidepod::agent;

namespace {

Policy spares(int count) {
  Policy policy;
  policy.spares = count;
  policy.renewal_calm = 0s;
  return policy;
}

// A job of bob's has run and ended in the first container, whose digest is known; the others are as they
// began.
struct Scene : Harness {
  explicit Scene(int containers = 2, int count = 1, const Policy& policy = {})
      : Harness(containers, with(policy, count)) {
    ask(k_image_a, wire::Verb::exec, "bob");
    switch_to(0, k_image_a, k_digest_a);
    REQUIRE(state() == State::running);
  }
  static Policy with(Policy policy, int count) {
    policy.spares = count;
    policy.renewal_calm = 0s;
    return policy;
  }
  int patches() const { return count<Patch>(); }
};

// A job runs in the first container, and the status has not told the digest of its image yet.
void run_undigested(Harness& h) {
  h.ask(k_image_a);
  h.patched();
  h.goodbye();
  h.hello();
  REQUIRE(h.state() == State::running);
}

}  // namespace

TEST_CASE("spares: without any, nothing is switched that nobody asked for") {
  Scene s(2, 0);
  s.end_job();
  CHECK(s.patches() == 1);
  CHECK(s.state(1) == State::idle);
}

TEST_CASE("spares: one gets the image that was asked for, and the next owner finds it ready") {
  Scene s;
  CHECK(s.noted("event=renew container=payload-1 image=" + k_image_a));
  CHECK(s.state(1) == State::switching);
  s.switch_to(1, k_image_a, k_digest_a);
  CHECK(s.state(1) == State::idle);
  CHECK(s.patches() == 2);
  const ClientId client = s.ask(k_image_a, wire::Verb::exec, "alice");
  CHECK(s.last<Launch>().client == client);
  CHECK(s.last<Launch>().glue == s.glue[1]);
  CHECK(s.noted("how=warm"));
}

TEST_CASE("spares: it comes to rest") {
  Scene s(3, 2);
  int renewed = 0;
  while (s.core.containers().state_of("payload-1") == State::switching ||
         s.core.containers().state_of("payload-2") == State::switching) {
    const int at = s.state(1) == State::switching ? 1 : 2;
    s.switch_to(at, k_image_a, k_digest_a);
    REQUIRE(++renewed < 10);
  }
  CHECK(s.patches() == 1 + renewed);
  s.end_job();
  for (int i = 0; i < 20; ++i) s.pass(100s);
  CHECK(s.patches() == 1 + renewed);
}

TEST_CASE("spares: a few are made ready together, and no more while a job waits") {
  Scene s(8, 7);
  for (int at = 1; at <= 4; ++at) CHECK(s.state(at) == State::switching);
  CHECK(s.patches() == 1 + 4);
  // One is done: the next.
  s.switch_to(1, k_image_a, k_digest_a);
  CHECK(s.patches() == 1 + 5);
  // A job that waits for its own image: those under way go on, and no other begins.
  s.ask(k_image_b, wire::Verb::exec, "alice");
  const int then = s.patches();
  s.switch_to(2, k_image_a, k_digest_a);
  CHECK(s.patches() == then);
}

TEST_CASE("spares: a job that comes meanwhile waits for the switch that is under way") {
  Scene s(3, 1);
  REQUIRE(s.state(1) == State::switching);
  REQUIRE(s.state(2) == State::idle);
  const ClientId client = s.ask(k_image_a, wire::Verb::exec, "alice");
  CHECK(s.patches() == 2);
  s.switch_to(1, k_image_a, k_digest_a);
  CHECK(s.last<Launch>().client == client);
  CHECK(s.state(1) == State::running);
}

TEST_CASE("spares: an image of which no digest is known is not made ready") {
  Harness h(2, spares(1));
  run_undigested(h);
  CHECK(h.count<Patch>() == 1);
  h.runs(0, "docker.io/library/a:1", "docker.io/library/a@" + k_digest_a);
  CHECK(h.count<Patch>() == 2);
}

TEST_CASE("spares: containers enough for the jobs that can come stay as they are") {
  // Two jobs at a time, of which one runs. The third container has gone for a moment, so the other job's is
  // all that is left.
  Harness h(3, spares(1));
  h.ask(k_image_a, wire::Verb::exec, "bob");
  h.lose(2);
  h.switch_to(0, k_image_a, k_digest_a);
  REQUIRE(h.state(1) == State::idle);
  CHECK(h.count<Patch>() == 1);
  h.hello(2);
  CHECK(h.count<Patch>() == 2);
}

TEST_CASE("spares: one that cannot be had is left alone for a while, and is no failure of the pilot's") {
  Policy policy;
  policy.give_up_after = 1;
  Scene s(2, 1, policy);
  REQUIRE(s.state(1) == State::switching);
  s.patch_failed(422, "no");
  CHECK(s.count<GiveUp>() == 0);
  CHECK(s.patches() == 2);
  s.pass(599s);
  CHECK(s.patches() == 2);
  s.pass(1s);
  CHECK(s.patches() == 3);
}

TEST_CASE("spares: a pilot that is to end makes nothing ready") {
  Harness h(2, spares(1));
  run_undigested(h);
  h.core.drain(h.now);
  h.take();
  h.runs(0, k_image_a, "docker.io/library/a@" + k_digest_a);
  CHECK(h.noted("event=digest"));
  CHECK(h.count<Patch>() == 1);
}

TEST_CASE("spares: what the pod's annotation says is wanted is made ready, once it is known here") {
  Scene s(3, 2);
  s.switch_to(1, k_image_a, k_digest_a);
  s.switch_to(2, k_image_a, k_digest_a);
  s.end_job();
  const int before = s.patches();
  // Nobody has seen b run here.
  s.pod.likely_images = {{"docker.io/library/b:1", 1000}};
  s.tell();
  CHECK(s.patches() == before);
  const auto place = [&s] { return s.last<Patch>().container.back() - '0'; };
  s.ask(k_image_b, wire::Verb::exec, "carol");
  s.switch_to(place(), k_image_b, k_digest_b);
  // One container would do for an image that one job has had.
  const auto renewed = [&s](int at) {
    return s.noted(fmt::format("event=renew container=payload-{} image={}", at, k_image_b));
  };
  CHECK((renewed(0) || renewed(1) || renewed(2)));
}

TEST_CASE("spares: what the queues want turns a pilot that has run something else") {
  Scene s;
  s.end_job();
  s.switch_to(1, k_image_a, k_digest_a);
  s.ask(k_image_b, wire::Verb::exec, "carol");
  s.switch_to(s.last<Patch>().container.back() - '0', k_image_b, k_digest_b);
  const int b = s.state(0) == State::running ? 0 : 1;
  s.end_job(b);
  for (int i = 0; i < 6; ++i) {
    s.ask(k_image_a, wire::Verb::exec, "bob");
    s.end_job(1 - b);
  }
  s.switch_to(b, k_image_a, k_digest_a);
  const int before = s.patches();
  s.tell();
  CHECK(s.patches() == before);
  s.pod.likely_images = {{"docker.io/library/b:1", 1000}};
  s.tell();
  CHECK(s.patches() == before + 1);
  CHECK(s.last<Patch>().image.ends_with("@" + k_digest_b));
}

TEST_CASE("spares: what the queues want is heard with the first word of the pod") {
  Harness h(2, spares(1), 0, Core::Earlier::none, made_with(1, k_image_a));
  h.runs(1, k_image_a, "docker.io/library/a@" + k_digest_a);
  h.restart(spares(1));
  h.hello(0);
  h.hello(1);
  h.pod.likely_images = {{"docker.io/library/a:1", 1000}};
  h.core.on_first_pod(h.pod, Core::Earlier::none, h.now);
  h.take();
  CHECK(h.noted("event=renew container=payload-0 image=" + k_image_a));
}

TEST_CASE("spares: the pilot's own image is what jobs want that name it") {
  Harness h(2, spares(1));
  h.pod.likely_images = {{"reg.example/pilot:1", 1000}};
  h.tell();
  h.ask(k_image_a, wire::Verb::exec, "bob");
  h.switch_to(0, k_image_a, k_digest_a);
  h.end_job();
  CHECK(h.count<Patch>() == 1);  // the other stays at home
  h.ask(k_image_b, wire::Verb::exec, "carol");
  CHECK(h.last<Patch>().container == "payload-0");
}

TEST_CASE("spares: of those that nobody misses a job takes the one that was used longest ago") {
  Harness h(2, spares(1));
  h.ask("");
  h.end_job();
  h.ask(k_image_a);
  CHECK(h.last<Patch>().container == "payload-1");
}

TEST_CASE("spares: a job that joins a switch has all of its own time") {
  Scene s;
  REQUIRE(s.state(1) == State::switching);
  s.now += 300s;
  const ClientId client = s.ask(k_image_a, wire::Verb::exec, "alice", 20002);
  const auto told = [&] {
    return std::ranges::any_of(s.all, [&](const Action& action) {
      const auto* fail = std::get_if<Fail>(&action);
      return fail != nullptr && fail->client == client;
    });
  };
  s.core.on_time(s.now + 599s);
  s.take();
  CHECK_FALSE(told());
  s.core.on_time(s.now + 600s);
  s.take();
  CHECK(told());
}

TEST_CASE("spares: a run that fails as it joins a switch has nothing more to do with it") {
  Scene s(3, 2);
  REQUIRE(s.state(1) == State::switching);
  REQUIRE(s.state(2) == State::switching);
  const ClientId first = s.ask(k_image_a, wire::Verb::run, "alice", 20002);
  s.core.on_image_known(first, {}, s.now);  // it runs nothing by itself
  s.take();
  CHECK(s.count<Fail>() == 1);
  s.ask(k_image_a, wire::Verb::run, "alice", 20002);
  CHECK(s.count<Fail>() == 2);
  for (const int i : {1, 2}) {
    s.switch_to(i, k_image_a, k_digest_a);
    CHECK(s.state(i) == State::idle);
  }
}

TEST_CASE("spares: what is being made ready counts for what comes next") {
  Harness h(4, spares(2));
  const auto runs_for = [&h](int i, const std::string& image, const std::string& owner) {
    h.ask(image, wire::Verb::exec, owner);
    h.patched();
    h.goodbye(i);
    h.hello(i);
    REQUIRE(h.state(i) == State::running);
  };
  runs_for(0, k_image_a, "bob");
  runs_for(1, k_image_b, "carol");
  // Both digests are told at once.
  h.status(0).image_id = "docker.io/library/a@" + k_digest_a;
  h.status(0).image = k_image_a;
  h.status(0).container_id = "test://" + h.id(0);
  h.runs(1, k_image_b, "docker.io/library/b@" + k_digest_b);
  CHECK(h.noted("event=renew container=payload-2 image=" + k_image_b));
  CHECK(h.noted("event=renew container=payload-3 image=" + k_image_a));
}

TEST_CASE("spares: one that a job has joined is not joined by another") {
  Scene s(3, 1);
  const ClientId first = s.ask(k_image_a, wire::Verb::exec, "alice", 20002);
  CHECK(s.patches() == 2);
  s.ask(k_image_a, wire::Verb::exec, "carol", 20003);
  CHECK(s.patches() == 3);
  s.switch_to(1, k_image_a, k_digest_a);
  CHECK(s.last<Launch>().client == first);
}

TEST_CASE("spares: soon after a job was announced none is made ready for likely ones") {
  Policy policy;
  policy.spares = 1;
  Harness h(2, policy);
  const auto announce = [&](const std::string& image) {
    h.core.on_announce({0, wire::Verb::announce, false, Image(image), "bob", "1.0", 20001}, h.now);
    h.take();
  };
  announce(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  h.ask(k_image_a, wire::Verb::exec, "bob");
  CHECK(h.state() == State::running);
  h.end_job();
  h.pass(29s);
  announce(k_image_a);
  h.pass(29s);
  CHECK(h.count<Patch>() == 1);
  h.pass(1s);
  CHECK(h.count<Patch>() == 2);
  CHECK(h.noted("event=renew container=payload-1 image=" + k_image_a));
}

TEST_CASE("spares: after a job that nobody announced one is made ready at once") {
  Policy policy;
  policy.spares = 1;
  Harness h(2, policy);
  h.ask(k_image_a, wire::Verb::exec, "bob");
  h.switch_to(0, k_image_a, k_digest_a);
  CHECK(h.noted("event=renew container=payload-1 image=" + k_image_a));
}
