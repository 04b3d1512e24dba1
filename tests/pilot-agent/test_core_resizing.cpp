// What becomes of a size that was asked of the API: answers, refusals, proofs and patience.

#include "tests/pilot-agent/sized_pod.hpp"

using namespace glidepod;
using namespace glidepod::agent;

TEST_CASE("core: where sizes are not served, it is said once and nobody asks again") {
  for (const int status : {403, 404, 405, 422}) {
    Sized h;
    h.ask(k_image_a);
    h.used();
    h.resize_failed(status);
    CHECK(h.noted("event=resize_off reason=\"" + std::to_string(status)));
    CHECK(h.count<Patch>() == 1);
    h.switch_to(0, k_image_a, k_digest_a);
    CHECK(h.count<Launch>() == 1);
    h.ask(k_image_b);
    CHECK(h.count<Patch>() == 2);
    CHECK(h.count<Resize>() == 1);
  }
  Sized busy;  // what may be better later is no such word
  busy.ask(k_image_a);
  busy.used();
  busy.resize_failed(429);
  CHECK_FALSE(busy.noted("event=resize_off"));
  CHECK(busy.count<Patch>() == 1);
  Harness bare(1, sized());
  CHECK(bare.noted("event=resize_off reason=\"the pod lacks the annotations"));
  Harness off;
  CHECK_FALSE(off.noted("event=resize_off"));
}

TEST_CASE("core: a job waits for its size no longer than it may") {
  Sized h;
  h.ask(k_image_a);
  h.used();
  h.resize_taken();
  h.pass(9s);
  CHECK(h.count<Patch>() == 0);
  CHECK(*h.core.next_deadline() == h.now + 1s);
  h.pass(1s);
  CHECK(h.count<Patch>() == 1);
  CHECK(
      h.noted("event=not_resized container=payload-0 reason=\"the kubelet has not resized the containers "
              "within 10 seconds\""));
  h.switch_to(0, k_image_a, k_digest_a);
  CHECK(h.count<Launch>() == 1);
  // What is under way may come about: until then, nothing else is asked.
  CHECK(h.core.watching());
  h.ask(k_image_b);
  CHECK(h.count<Patch>() == 2);
  CHECK(h.count<Resize>() == 1);

  Sized silent;  // glue does not say what it has in use
  silent.ask(k_image_a);
  silent.pass(10s);
  CHECK(silent.count<Resize>() == 0);
  CHECK(silent.count<Patch>() == 1);
}

TEST_CASE("core: an answer belongs to its question") {
  Sized h;
  h.ask(k_image_a);
  h.used();
  const Resize first = h.last<Resize>();
  h.pass(10s);
  CHECK(h.count<Patch>() == 1);
  h.switch_to(0, k_image_a, k_digest_a);
  h.end_job();
  h.pass(90s);
  h.slot_size = k_quarter;
  h.ask(k_image_a);
  h.used();
  CHECK(h.count<Resize>() == 2);
  kube::Failure refused;
  refused.kind = kube::Failure::Kind::status;
  refused.status = 404;
  h.core.on_resized(first.attempt, refused.to_error(), h.now);
  h.pod.generation = 5;
  h.pod.pending_resize = {"Deferred", 5};
  h.core.on_resized(first.attempt, h.pod, h.now);
  h.take();
  CHECK_FALSE(h.noted("event=resize_off"));
  CHECK(h.count<Launch>() == 1);
  h.pod.pending_resize.reset();
  h.resize_taken();
  h.in_force();
  CHECK(h.size_asked(1).request == Amount{3000, 3 * k_whole_gib});
  h.resize_taken();
  CHECK(h.count<Launch>() == 2);
}

TEST_CASE("core: an older size in the status is no proof, unless it is of this generation") {
  for (const bool told : {false, true}) {
    Sized h;
    h.ask(k_image_a);
    h.used();
    h.resize_taken();  // the kubelet does nothing about it, not yet
    h.pass(10s);
    h.switch_to(0, k_image_a, k_digest_a);
    h.end_job();
    h.pass(90s);
    h.slot_size = k_all;
    h.ask(k_image_a);
    h.used();
    h.resize_taken();
    h.pod.statuses[2].size.limit = {100, 64 << 20};
    h.tell();
    CHECK(h.last<Resize>().changes.front().container == "payload-0");
    h.resize_taken();
    CHECK(h.count<Launch>() == 1);
    if (told) h.pod.observed_generation = h.pod.generation;
    h.tell();
    CHECK(h.count<Launch>() == (told ? 2 : 1));
    h.pass(10s);
    CHECK(h.count<Fail>() == (told ? 0 : 1));
  }
}

TEST_CASE("core: what the node cannot do is not waited for") {
  Sized h;
  h.ask(k_image_a);
  h.used();
  h.resize_taken();
  h.pod.pending_resize = {"Deferred", h.pod.generation - 1};  // an earlier one
  h.tell();
  CHECK(h.count<Patch>() == 0);
  h.pod.pending_resize = {"Infeasible", h.pod.generation};
  h.tell();
  CHECK(h.count<Patch>() == 1);
  CHECK(h.noted("the kubelet says that the resize is Infeasible"));
}

TEST_CASE("core: after an earlier agent, nobody knows what was asked") {
  Sized h(sized(), Core::Earlier::some);
  CHECK(h.core.watching());
  h.pass(90s);
  CHECK(*h.core.next_deadline() > h.now);
}

TEST_CASE("core: a slot of which half is not known asks for no size") {
  for (const Amount& slot : {Amount{0, k_whole_gib}, Amount{1000, 0}}) {
    Sized h;
    h.slot_size = slot;
    h.ask(k_image_a);
    CHECK(h.count<SendBeat>() == 0);
    CHECK(h.count<Patch>() == 1);
  }
}

TEST_CASE("core: how long an image took to start limits nothing while the container gets its size") {
  Policy policy = sized();
  policy.spares = 1;
  policy.renewal_calm = 0s;
  Sized h(policy);
  h.spare_begins();
  Time::duration limit{};
  SUBCASE("its glue was silent") {
    h.runs(1, k_image_a, "docker.io/library/a@" + k_digest_a);
    limit = 30s;
  }
  SUBCASE("its image could not be pulled") {
    h.waits(1, "ErrImagePull", "dial tcp: i/o timeout");
    limit = 120s;
  }
  h.ask(k_image_a);
  h.pass(limit - 1s);
  h.hello(1);
  CHECK(h.count<SendBeat>() > 0);
  h.pass(1s);
  CHECK(h.count<Fail>() == 0);
  h.used();
  h.resize_taken();
  h.in_force();
  CHECK(h.count<Launch>() == 2);
}

TEST_CASE("core: what the API refuses for now changes no size, and whoever waits goes on") {
  Sized h;
  h.ask(k_image_a);
  h.used();
  h.slot_size = {};
  h.ask(k_image_b, wire::Verb::exec, "bob", 20002);
  CHECK(h.count<Patch>() == 0);
  h.resize_failed(429);
  CHECK(h.count<Patch>() == 2);
  h.switch_to(0, k_image_a, k_digest_a);
  h.used();  // it is tried once more
  h.resize_failed(429);
  h.end_job();
  const int beats = h.count<SendBeat>();
  h.slot_size = k_all;  // as it was made
  h.ask(k_image_a);
  CHECK(h.state(0) == State::running);
  CHECK(h.count<SendBeat>() == beats);
}

TEST_CASE("core: an answer from an API server that is behind does not delay what the status has shown") {
  Sized h;
  h.ask(k_image_a);
  h.used();
  h.slot_size = {};
  h.ask(k_image_b, wire::Verb::exec, "bob", 20002);
  const Resize question = h.last<Resize>();
  for (const auto& change : question.changes)
    for (std::size_t i : {1U, 2U})
      if (h.pod.containers[i].name == change.container)
        h.pod.containers[i].size = h.pod.statuses[i].size = change.size;
  h.pod.generation = h.pod.observed_generation = 5;
  h.pod.resource_version = "9";
  h.tell();
  CHECK(h.count<Patch>() == 0);
  h.pod.resource_version = "8";
  h.core.on_resized(question.attempt, h.pod, h.now);
  h.take();
  CHECK(h.count<Patch>() == 2);
}

TEST_CASE("core: one reason why a container was not resized is said once") {
  Sized h;
  const auto said = [&h] {
    return std::ranges::count_if(h.all, [](const Action& action) {
      const auto* note = std::get_if<Note>(&action);
      return note != nullptr && note->text.starts_with("event=not_resized");
    });
  };
  for (const int status : {429, 429, 503}) {
    h.ask(k_image_a, wire::Verb::test);
    h.used();
    h.resize_failed(status);
    h.patch_failed(422, "denied request: registry");
    h.pass(90s);
  }
  CHECK(said() == 2);
}

TEST_CASE("core: a container has no more than the kubelet shows, whatever the pod says") {
  Sized h(sized(), Core::Earlier::some);
  for (std::size_t i : {1U, 2U}) h.pod.statuses[i].size.limit = k_quarter;
  h.come_home();
  h.ask(k_image_a);
  h.used();
  h.resize_failed(404);
  CHECK(h.count<Fail>() == 1);
}

TEST_CASE("core: a container that could not get its size is not the next one that is tried") {
  Sized h(sized(), Core::Earlier::some);
  h.pod.containers[1].size.limit = h.pod.statuses[1].size.limit = k_quarter;
  h.come_home();
  h.ask(k_image_a);
  h.used();
  h.resize_failed(404);
  REQUIRE(h.count<Fail>() == 1);
  h.now += 1s;
  h.ask(k_image_a);
  CHECK(h.count<Fail>() == 1);
  CHECK(h.last<Patch>().container == "payload-1");
}

TEST_CASE("core: where a resize got no answer the status proves nothing before all has come about") {
  Sized h;
  h.first_job();
  h.end_job();
  h.slot_size = k_all;
  h.ask(k_image_a);
  h.used();
  h.resize_taken();
  h.in_force();
  h.resize_failed(0);  // of what was to grow
  h.tell();
  CHECK(h.core.watching());
  h.pass(90s);
  CHECK_FALSE(h.core.watching());
}

TEST_CASE("core: a size that comes about late is waited for no longer than that") {
  Sized h;
  h.ask(k_image_a);
  h.used();
  h.resize_taken();
  h.pass(10s);
  h.switch_to(0, k_image_a, k_digest_a);
  h.end_job();
  CHECK(h.core.watching());
  h.in_force();
  CHECK_FALSE(h.core.watching());
}

TEST_CASE("core: where nothing was asked of the API nothing can come about") {
  Sized h;
  h.ask(k_image_a);
  h.used(0);  // nobody knows what is in use
  h.switch_to(0, k_image_a, k_digest_a);
  h.used(0);
  h.end_job();
  CHECK(h.count<Resize>() == 0);
  CHECK_FALSE(h.core.watching());
}

TEST_CASE("core: a container without a limit that was asked to have one may get it yet") {
  Sized h(sized(), Core::Earlier::none, {});
  h.slot_size = k_quarter;
  h.ask(k_image_a);
  h.used();
  h.resize_failed(0);
  h.switch_to(0, k_image_a, k_digest_a);
  h.end_job();
  REQUIRE(h.count<Launch>() == 1);
  h.slot_size = k_half;
  h.ask(k_image_a);
  CHECK(h.count<Launch>() == 1);
}
