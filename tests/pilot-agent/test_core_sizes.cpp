// A container gets its job's size before the job, and before another image.

#include "tests/pilot-agent/sized_pod.hpp"

using namespace glidepod;
using namespace glidepod::agent;

TEST_CASE("core: a container has its job's size before it has another image, and then the job") {
  Sized h;
  h.ask(k_image_a);
  CHECK(h.state() == State::switching);
  CHECK(h.count<SendBeat>() == 2);
  CHECK(h.count<Resize>() == 0);
  h.used();
  CHECK(h.last<Resize>().changes.size() == 2);
  CHECK(h.size_asked(0) == Size{k_half, k_half});
  CHECK(h.size_asked(1) == Size{k_half, k_half});
  CHECK(h.count<Patch>() == 0);
  h.resize_taken();
  CHECK(h.core.watching());
  CHECK(h.count<Patch>() == 0);
  h.in_force();
  REQUIRE(h.count<Patch>() == 1);
  h.switch_to(0, k_image_a, k_digest_a);
  CHECK(h.count<Launch>() == 1);
  h.end_job();
  // The next one of this size finds it so.
  h.ask(k_image_a);
  CHECK(h.count<Launch>() == 2);
  CHECK(h.count<Resize>() == 1);
}

TEST_CASE("core: a warm container gets another size first, and what grows waits for what shrinks") {
  Sized h;
  h.first_job();
  h.end_job();
  h.slot_size = k_all;
  h.ask(k_image_a);
  CHECK(h.count<Launch>() == 1);
  h.used();
  CHECK(h.last<Resize>().changes.size() == 1);
  CHECK(h.size_asked(1) == Size{{}, {100, 64 << 20}});
  h.resize_taken();
  CHECK(h.count<Resize>() == 2);
  h.in_force();
  CHECK(h.count<Resize>() == 3);
  CHECK(h.size_asked(0) == Size{k_all, k_all});
  h.resize_taken();
  CHECK(h.count<Launch>() == 1);
  h.in_force();
  CHECK(h.count<Launch>() == 2);
  CHECK(h.noted("how=warm"));
}

TEST_CASE("core: what a test had made ready is launched at once") {
  Sized h;
  h.slot_size = {};  // HTCondor has not said it yet
  h.ask(k_image_a, wire::Verb::test);
  h.now += 3s;
  h.switch_to(0, k_image_a, k_digest_a);
  CHECK(h.state() == State::reserved);
  h.slot_size = k_half;
  h.ask(k_image_a);
  CHECK(h.state() == State::switching);
  h.used();
  h.resize_taken();
  h.in_force();
  CHECK(h.count<Launch>() == 1);
  CHECK(h.core.snapshot().containers[0].bound_in == 3s);
  CHECK(h.noted("how=switched"));
}

TEST_CASE("core: a container that may yet be made smaller is no place for a job that needs more") {
  Sized h;
  h.first_job();
  h.end_job();
  h.slot_size = k_all;
  h.ask(k_image_a);  // container 1 is to have 64 MiB
  h.used();
  SUBCASE("as nobody has answered") {
    h.resize_failed(0);
  }
  SUBCASE("as it is not in force yet") {
    h.resize_taken();
    h.pass(10s);
  }
  // Its own container has but half of what the slot has.
  CHECK(h.last<Fail>().fault == wire::Fault::infrastructure);
  CHECK(h.state() == State::idle);
  CHECK(h.count<Launch>() == 1);
  h.slot_size = k_half;
  h.ask(k_image_a);
  CHECK(h.count<Launch>() == 2);
  h.ask(k_image_b);
  const int patches = h.count<Patch>();
  h.pass(1s);
  CHECK(h.count<Patch>() == patches);
  h.in_force();  // what the pod says: half of it in one case
  h.pass(90s);
  h.used();
  CHECK(h.count<Resize>() + h.count<Patch>() > 2 + patches);
}

TEST_CASE("core: one size at a time, and who needs none does not wait") {
  Sized h;
  h.first_job();
  h.end_job();
  h.ask(k_image_a, wire::Verb::test);
  CHECK(h.state() == State::reserved);
  h.slot_size = k_quarter;
  h.ask(k_image_b, wire::Verb::exec, "bob", 20002);
  CHECK(h.state(1) == State::switching);
  h.ask("docker.io/library/c:1", wire::Verb::exec, "carol", 20003);
  h.slot_size = k_half;
  h.ask(k_image_a);
  CHECK(h.count<Launch>() == 2);
  CHECK(h.count<Patch>() == 1);
}

TEST_CASE("core: a container that ends while it gets its size goes on to its image") {
  Sized h;
  h.ask(k_image_a);
  h.used();
  h.resize_taken();
  h.goodbye(0);
  REQUIRE(h.count<Patch>() == 1);
  h.pass(10s);  // its size is not waited for
  CHECK(h.count<Patch>() == 1);
  h.patched();
  h.hello(0);
  h.runs(0, k_image_a, "docker.io/library/a@" + k_digest_a);
  CHECK(h.count<Launch>() == 1);

  Sized other;  // of another one nobody waits for what it has in use
  other.ask(k_image_a);
  other.core.on_beat(other.glue[0], {other.last<SendBeat>().number - 1, 1000}, other.now);
  CHECK(other.count<Resize>() == 0);
  other.lose(1);
  other.take();
  CHECK(other.count<Resize>() == 1);
  CHECK(other.size_asked(1) == Size{});
}

TEST_CASE("core: nobody's memory in use is taken from it") {
  Sized h;
  h.ask(k_image_a);
  h.used(3 << 20);  // 3 GiB, in a slot of 2
  CHECK(h.count<Resize>() == 0);
  CHECK(h.count<Patch>() == 1);

  Sized unknown;
  unknown.ask(k_image_a);
  unknown.used(0);
  CHECK(unknown.count<Resize>() == 0);
  CHECK(unknown.count<Patch>() == 1);
}

TEST_CASE("core: a job that is held for its memory is told its slot's limit") {
  Sized h;
  h.first_job();
  h.lose(0);
  kube::Termination end{"OOMKilled", "", 137, 0, "test://" + Harness::name(0) + ".1"};
  h.status(0).last_terminated = end;
  h.waits(0, "CrashLoopBackOff", "back-off");
  CHECK(h.last<Hold>().reason.find("memory limit of 2048 megabytes") != std::string::npos);
}

TEST_CASE("core: a container without a limit is large enough for any slot") {
  Harness h(1, sized());
  h.slot_size = k_all;
  h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  CHECK(h.count<Launch>() == 1);
}

TEST_CASE("core: what a pod was made with is enough for its jobs, what an earlier agent has left is not") {
  for (const auto earlier : {Core::Earlier::none, Core::Earlier::some}) {
    Sized h(sized(), earlier, k_quarter);
    if (earlier == Core::Earlier::some) h.come_home();
    h.ask(k_image_a);
    h.used();
    h.resize_failed(404);
    CHECK(h.count<Fail>() == (earlier == Core::Earlier::some ? 1 : 0));
    if (earlier == Core::Earlier::none) continue;
    // So it is of what is asked for later, whether the container has it or would be given it.
    const int patches = h.count<Patch>();
    for (const char* image : {"reg.example/pilot:1", "docker.io/library/b:1"}) h.ask(image);
    CHECK(h.count<Fail>() == 3);
    CHECK(h.last<Fail>().message == "the job's payload container cannot get the memory of the job's slot");
    CHECK(h.count<Patch>() == patches);
    CHECK(h.core.snapshot().failures == 3);
  }
}

TEST_CASE("core: a container that is told its image before anybody can size it gets its size after that") {
  Sized h;
  h.slot_size = {};
  h.ask(k_image_b, wire::Verb::exec, "bob", 20002);
  h.switch_to(0, k_image_b, k_digest_b);
  h.ask(k_image_a);
  h.patch_failed(0);    // no answer
  h.patch_failed(403);  // and the way home is refused
  REQUIRE(h.state(1) == State::broken);
  h.slot_size = k_half;
  h.ask(k_image_a);
  CHECK(h.count<SendBeat>() == 0);
  h.patched();
  h.goodbye(1);
  h.hello(1);
  h.runs(1, "reg.example/other:1", "reg.example/other@" + k_digest_b);
  h.pass(8s);
  h.runs(1, k_image_a, "docker.io/library/a@" + k_digest_a);
  CHECK(h.count<Launch>() == 1);
  CHECK(h.count<SendBeat>() == 1);
  h.tell();
  CHECK_FALSE(h.core.watching());  // glue is asked, and not the API
  const int patches = h.count<Patch>();
  h.pass(2s);  // then what the status had shown before would have been too long
  CHECK(h.count<Patch>() == patches);
  h.used();
  CHECK(h.size_asked(1) == Size{k_half, k_half});
  h.resize_taken();
  h.in_force();
  CHECK(h.count<Launch>() == 2);
  CHECK(h.noted("how=switched"));
}

TEST_CASE(
    "core: a container that has its image while another gets its size is idle until it can get its own") {
  Sized h;
  h.slot_size = {};
  h.ask(k_image_b, wire::Verb::exec, "bob", 20002);
  h.switch_to(0, k_image_b, k_digest_b);
  h.ask(k_image_a);
  REQUIRE(h.state(1) == State::switching);
  h.patch_failed(0);    // no answer
  h.patch_failed(403);  // and the way home is refused
  REQUIRE(h.state(1) == State::broken);
  h.slot_size = k_half;
  h.ask(k_image_a, wire::Verb::test);
  h.patched();
  h.goodbye(1);
  h.hello(1);
  h.runs(1, "reg.example/other:1", "reg.example/other@" + k_digest_b);
  h.end_job(0);
  h.slot_size = k_quarter;
  h.ask(k_image_b, wire::Verb::exec, "bob", 20002);
  REQUIRE(h.core.watching());
  REQUIRE(h.state(0) == State::switching);
  h.runs(1, k_image_a, "docker.io/library/a@" + k_digest_a);
  CHECK(h.state(1) == State::idle);
}

TEST_CASE("core: a job whose time is over while its container gets its size has done nothing to that") {
  Policy policy = sized();
  policy.bind_deadline = 5s;
  Sized h(policy);
  h.ask(k_image_a);
  h.used();
  h.resize_taken();
  h.pass(5s);
  CHECK(h.count<Fail>() == 1);
  CHECK(h.state() == State::idle);
  h.pass(5s);
  CHECK(h.count<Patch>() == 0);
  h.ask(k_image_a);
  CHECK(h.count<Resize>() == 1);  // what was asked for may yet come about
  CHECK(h.count<Patch>() == 1);
}

TEST_CASE("core: a warm container whose glue does not say what it has in use is made anew") {
  Sized h;
  h.first_job();
  h.end_job();
  h.slot_size = k_quarter;
  h.ask(k_image_a);
  const int patches = h.count<Patch>();
  h.pass(3s);
  CHECK(h.count<Launch>() == 1);
  REQUIRE(h.count<Patch>() == patches + 1);
  CHECK(h.last<Patch>().image.ends_with("@" + k_digest_a));
  SUBCASE("which is no other image") {
    h.switch_to(0, k_image_a, k_digest_a);
    h.used();
    for (int round = 0; round < 2; ++round) {
      h.resize_taken();
      h.in_force();
    }
    CHECK(h.count<Launch>() == 2);
    CHECK(h.noted("how=fresh"));
  }
  SUBCASE("unless the API refuses that") {
    h.patch_failed(403);
    CHECK(h.state() == State::idle);
  }
}

TEST_CASE("core: a warm container that turns out to run something else gets its image after its size") {
  Sized h;
  h.slot_size = {};
  h.ask(k_image_a);
  h.patched();
  h.goodbye();
  h.hello();
  h.end_job();
  h.slot_size = k_quarter;
  h.ask(k_image_a);
  REQUIRE(h.state() == State::switching);
  h.runs_home(0);
  CHECK(h.noted("event=doubtful"));
  const int patches = h.count<Patch>();
  h.used();
  h.resize_taken();
  h.in_force();
  h.resize_taken();
  h.in_force();
  CHECK(h.count<Launch>() == 1);
  CHECK(h.count<Patch>() == patches + 1);
}

TEST_CASE("core: a container whose job is gone before it has its size is free once it has it") {
  Sized h;
  h.first_job();
  h.end_job();
  h.slot_size = k_quarter;
  const ClientId client = h.ask(k_image_a);
  h.used();
  h.core.on_client_gone(client, h.now);
  for (int round = 0; round < 2; ++round) {
    h.resize_taken();
    h.in_force();
  }
  CHECK(h.state() == State::idle);
  CHECK(h.count<Launch>() == 1);
}

TEST_CASE("core: of another container whose glue does not say what it has in use no limit is lowered") {
  Sized h;
  h.ask(k_image_a);
  h.core.on_beat(
      h.glue[0],
      {h.last<SendBeat>([&](const SendBeat& beat) { return beat.glue == h.glue[0]; }).number, 1000}, h.now);
  h.take();
  CHECK(h.count<Resize>() == 0);
  h.pass(3s);
  CHECK(h.size_asked(0) == Size{k_half, k_half});
  CHECK(h.size_asked(1) == Size{});
}

TEST_CASE(
    "core: a size that the pod has already, and the kubelet does not, is waited for and not asked again") {
  Sized h;
  h.ask(k_image_a);
  h.used();
  h.resize_taken();
  h.pass(10s);
  h.switch_to(0, k_image_a, k_digest_a);
  h.end_job();
  h.pass(90s);
  REQUIRE(h.count<Launch>() == 1);
  h.ask(k_image_a);
  h.used();
  h.tell();
  CHECK(h.core.watching());
  CHECK(h.count<Launch>() == 1);
  SUBCASE("in time") {
    h.in_force();
  }
  SUBCASE("for so long, and it may come about later") {
    h.pass(10s);
    h.end_job();
    CHECK(h.core.watching());
  }
  CHECK(h.count<Launch>() == 2);
  CHECK(h.count<Resize>() == 1);
}

TEST_CASE("core: a job whose container is ready while another one gets its size waits for its own") {
  Policy policy = sized();
  policy.spares = 1;
  policy.renewal_calm = 0s;
  Sized h(policy);
  h.spare_begins();
  const ClientId alice = h.ask(k_image_a);
  const ClientId bob = h.ask(k_image_a, wire::Verb::exec, "bob", 20002);
  REQUIRE(h.state(0) == State::switching);
  SUBCASE("unless the pod has that already") {
    h.pod.containers[2].size.limit = k_half;
    h.tell();
    h.hello(1);
    CHECK(h.last<Launch>().client == alice);
    return;
  }
  h.hello(1);
  CHECK(h.count<Launch>() == 1);
  CHECK(h.state(1) == State::idle);
  h.used();
  h.resize_taken();
  h.in_force();
  CHECK(h.last<Launch>().client == bob);
  h.used();
  h.resize_taken();
  h.in_force();
  CHECK(h.last<Launch>().client == alice);
}
