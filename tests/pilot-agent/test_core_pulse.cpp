// Glues that do not answer, jobs whose end is known, pilots that fail.
#include "tests/pilot-agent/core_harness.hpp"

using namespace glidepod;
using namespace glidepod::agent;

namespace {
void main_exits(Harness& h, ExitStatus status) {
  h.core.on_exited(h.glue[0], {h.last<Launch>().job, status, 1, 0, 0, 0}, h.now);
  h.take();
}
}  // namespace

TEST_CASE("pulse: only a glue with a job is asked, and one that answers is left alone") {
  Harness h;
  CHECK_FALSE(h.core.next_deadline().has_value());
  h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  for (int i = 1; i <= 20; ++i) {
    h.pass(20s);
    CHECK(h.count<SendBeat>() == i);
    h.core.on_beat(h.glue[0], {h.last<SendBeat>().number}, h.now);
  }
  h.end_job();
  CHECK_FALSE(h.core.next_deadline().has_value());
  CHECK(h.count<KillGlue>() == 0);
}

TEST_CASE("pulse: a wedged glue costs one switch, not the slot") {
  Harness h;
  const ClientId client = h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  h.pass(20s);
  const GlueId wedged = h.glue[0];
  SUBCASE("it never answers") {}
  SUBCASE("it answers another question") {
    h.core.on_beat(wedged, {77}, h.now);
  }
  h.pass(90s);
  CHECK(h.last<KillGlue>().glue == wedged);
  CHECK(h.state() == State::switching);
  h.pass(10s);
  CHECK(h.last<Fail>().client == client);
  CHECK(h.last<Fail>().fault == wire::Fault::infrastructure);
  h.over[0] = true;
  h.patched();
  h.hello();
  h.runs_home(0);
  h.cleared();
  CHECK(h.state() == State::idle);
}

TEST_CASE("pulse: after a kill, glue has only so much time") {
  Harness h;
  const ClientId client = h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  SUBCASE("the client is gone") {
    h.core.on_client_gone(client, h.now);
  }
  SUBCASE("the client asks for it") {
    h.core.on_client_signal(client, SIGKILL, h.now);
  }
  SUBCASE("the job has ended by itself") {
    main_exits(h, ExitStatus::exited(3));
  }
  h.take();
  CHECK(h.state() == State::draining);
  for (int i = 0; i < 9; ++i) {
    h.pass(10s);
    if (h.count<SendBeat>() > 0) h.core.on_beat(h.glue[0], {h.last<SendBeat>().number}, h.now);
  }
  CHECK(h.count<KillGlue>() == 1);
  CHECK(h.state() == State::switching);
}

TEST_CASE("jobs: an end that is known survives its glue") {
  Harness h;
  const ClientId client = h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  main_exits(h, ExitStatus::exited(7));
  CHECK(h.count<Answer>() == 0);
  SUBCASE("glue is killed while it cleans") {
    h.lose();
  }
  SUBCASE("its container is stopped while it cleans") {
    h.goodbye();
  }
  SUBCASE("nothing happens") {
    h.end_job(0, ExitStatus::exited(7));
  }
  CHECK(h.last<Answer>().client == client);
  CHECK(h.last<Answer>().status == ExitStatus::exited(7));
  CHECK(h.count<Fail>() == 0);
}

TEST_CASE("jobs: a kill that nobody asked for is explained by the status, not taken for the job's end") {
  Harness h;
  h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  const std::string lost = h.status(0).container_id;
  main_exits(h, ExitStatus::signaled(SIGKILL));
  h.lose();
  CHECK(h.count<Answer>() == 0);
  h.status(0).state = ContainerStatus::State::terminated;
  SUBCASE("out of memory") {
    h.status(0).terminated = kube::Termination{"OOMKilled", "", 137, 0, lost};
    h.tell();
    CHECK(h.last<Hold>().status == ExitStatus::signaled(SIGKILL));
  }
  SUBCASE("anything else") {
    h.status(0).terminated = kube::Termination{"Error", "", 137, 0, lost};
    h.tell();
    CHECK(h.last<Fail>().fault == wire::Fault::infrastructure);
  }
}

TEST_CASE(
    "jobs: a container that was killed without a word is told by the memory that its job was seen to have") {
  Harness h(0);
  h.add("payload-0", "reg.example/pilot:1", {"/glidepod/bin/glue"}, 0);
  h.pod.containers.back().size.limit.memory = 128 << 20;
  h.restart();
  h.hello();
  h.core.on_first_pod(h.pod, Core::Earlier::none, h.now);
  const ClientId client = h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  h.pass(20s);
  const auto seen = [&](std::int64_t mib) {
    h.core.on_beat(h.glue[0], {h.last<SendBeat>().number, mib << 10}, h.now);
  };
  const auto killed = [&] {
    h.status(0).state = ContainerStatus::State::terminated;
    h.status(0).terminated = kube::Termination{"Error", "", 137, 0, h.status(0).container_id};
    h.lose();
    h.tell();
  };
  bool held = false;
  SUBCASE("close to the limit") {
    seen(120);
    held = true;
  }
  SUBCASE("close to the limit, its own end by the same signal") {
    seen(120);
    main_exits(h, ExitStatus::signaled(SIGKILL));
    held = true;
  }
  SUBCASE("close to the limit, and ended by another signal") {
    seen(120);
    main_exits(h, ExitStatus::signaled(SIGTERM));
  }
  SUBCASE("far from the limit") {
    seen(100);
  }
  SUBCASE("close to the limit, and far from it later") {
    seen(120);
    h.pass(20s);
    seen(10);
  }
  SUBCASE("never seen") {}
  SUBCASE("close to the limit, and killed by the agent") {
    seen(120);
    h.pass(20s);
    h.pass(90s);
    CHECK(h.count<KillGlue>() == 1);
  }
  killed();
  CHECK(h.count<Hold>() == (held ? 1 : 0));
  if (held) {
    CHECK(h.last<Hold>().client == client);
    CHECK(h.last<Hold>().code == 34);
    CHECK(h.last<Hold>().subcode == 102);
    CHECK(h.last<Hold>().reason.find("limit of 128 megabytes. Peak usage: 120 megabytes.") !=
          std::string::npos);
  } else {
    CHECK(h.last<Fail>().fault == wire::Fault::infrastructure);
  }
}

TEST_CASE("pilot: one that fails one job after another gives up, and says why") {
  Harness h;
  for (int i = 0; i < 5; ++i) {
    CHECK(h.count<GiveUp>() == 0);
    h.ask(k_image_a);
    h.patch_failed(403, "pods \"pilot-1\" is forbidden: User cannot patch");
  }
  CHECK(h.last<GiveUp>().reason.find("5 failures of the infrastructure in a row, the last one: 403") == 0);
  const int patches = h.count<Patch>();
  const ClientId client = h.ask(k_image_a);
  CHECK(h.last<Fail>().client == client);
  CHECK(h.last<Fail>().fault == wire::Fault::infrastructure);
  CHECK(h.count<Patch>() == patches);
  CHECK(h.count<GiveUp>() == 1);
}

TEST_CASE("pilot: a user's fault and a job that starts do not count") {
  Harness h;
  for (int i = 0; i < 9; ++i) {
    h.ask(k_image_a);
    h.patch_failed(422, "denied request: registry");
  }
  CHECK(h.count<GiveUp>() == 0);
  for (int i = 0; i < 8; ++i) {
    h.ask(fmt::format("docker.io/library/x:{}", i));
    if (i == 3) {
      h.patched();
      h.goodbye();
      h.hello();
      h.core.on_started(h.glue[0], h.last<Launch>().job, 1, h.now);
      h.end_job();
      h.ask(k_image_b);
    }
    h.patch_failed(403, "cannot patch");
    CHECK(h.count<GiveUp>() == (i == 7 ? 1 : 0));
  }
}

TEST_CASE("pilot: it does not join before a switch has worked") {
  Policy policy;
  policy.first = Policy::First::prove;
  Harness h(2, policy);
  CHECK_FALSE(h.core.usable());
  CHECK(h.count<Patch>() == 1);
  CHECK(h.last<Patch>().image == "reg.example/pilot:g-1@" + k_digest_home);
  SUBCASE("it works") {
    h.patched();
    h.goodbye();
    h.hello();
    CHECK(h.core.usable());
    CHECK(h.count<Patch>() == 1);
  }
  SUBCASE("it is refused, and tried again after a while") {
    h.patch_failed(403, "cannot patch");
    CHECK(h.count<Patch>() == 1);
    CHECK(h.core.next_deadline() == h.now + 10s);
    for (int i = 2; i <= 5; ++i) {
      h.pass(10s);
      CHECK(h.count<Patch>() == i);
      h.patch_failed(403, "cannot patch");
    }
    CHECK(h.count<GiveUp>() == 1);
    CHECK_FALSE(h.core.usable());
  }
}

TEST_CASE("pilot: the test switch waits for a young pod's status, which names the pilot's image") {
  Policy policy;
  policy.first = Policy::First::prove;
  Harness h(0);
  h.restart(policy);
  h.add("payload-0", "reg.example/pilot:1", {"/x/glue"}, 0);
  const kube::Pod later = h.pod;
  for (ContainerStatus& status : h.pod.statuses) status.image_id.clear();
  h.hello();
  h.core.on_first_pod(h.pod, Core::Earlier::none, h.now);
  h.take();
  CHECK(h.count<Patch>() == 0);
  CHECK(h.core.watching());
  CHECK_FALSE(h.core.next_deadline().has_value());
  SUBCASE("it names a digest") {
    h.pod = later;
    h.tell();
    CHECK(h.last<Patch>().image == "reg.example/pilot:g-1@" + k_digest_home);
    h.patched();
    CHECK_FALSE(h.core.usable());
    h.goodbye();
    h.hello();
  }
  SUBCASE("it names none, so that the plain name is what the pod says already") {
    h.pod = later;
    for (ContainerStatus& status : h.pod.statuses) status.image_id = "sha256:0";
    h.tell();
    CHECK(h.last<Patch>().image == "reg.example/pilot:1");
    CHECK_FALSE(h.core.usable());
    h.patched();
  }
  CHECK(h.core.usable());
  CHECK(h.state() == State::idle);
}

TEST_CASE("core: what a snapshot says") {
  Harness h;
  h.ask(k_image_a);
  auto one = h.core.snapshot().containers.at(0);
  CHECK(one.state == State::switching);
  CHECK(one.step == "target by goodbye");
  CHECK(one.wanted == k_image_a);
  CHECK(one.job == "1.0");
  h.switch_to(0, k_image_a, k_digest_a);
  one = h.core.snapshot().containers.at(0);
  CHECK(one.state == State::running);
  CHECK(one.digest == k_digest_a);
  CHECK(one.owner == "alice");
  CHECK(h.core.snapshot().to_string().find("container=payload-0 state=running") == 0);
}

TEST_CASE("core: a snapshot says whose each container is, whatever it does, and who waits") {
  Harness h;
  h.slot = "slot1_2";
  const auto one = [&h] { return h.core.snapshot().containers.at(0); };
  const auto is_of_alice = [&one] {
    return one().job == "1.0" && one().owner == "alice" && one().slot == "slot1_2";
  };
  CHECK(one().name == "payload-0");
  CHECK(one().instance == "payload-0");
  CHECK(one().job.empty());
  h.ask(k_image_a, wire::Verb::test);
  CHECK(is_of_alice());
  CHECK(one().how.empty());
  h.now += 3s;
  h.switch_to(0, k_image_a, k_digest_a);
  CHECK(one().state == State::reserved);
  CHECK(is_of_alice());
  CHECK(one().image == k_image_a);
  CHECK(one().how == "switched");
  CHECK(one().bound_in == 3s);
  const ClientId client = h.ask(k_image_a, wire::Verb::run);
  CHECK(one().state == State::asking);
  CHECK(is_of_alice());
  h.ask(k_image_b, wire::Verb::exec, "bob", 20002);
  const Snapshot snapshot = h.core.snapshot();
  REQUIRE(snapshot.waiting.size() == 1);
  CHECK(snapshot.waiting[0].owner == "bob");
  CHECK(snapshot.waiting[0].slot == "slot1_2");
  CHECK(snapshot.waiting[0].image == k_image_b);
  CHECK_FALSE(snapshot.waiting[0].pulling);
  h.core.on_image_known(client, {{"/run"}, {}}, h.now);
  h.take();
  CHECK(one().state == State::running);
  CHECK(is_of_alice());
  CHECK(one().how == "switched");
  CHECK(one().bound_in == 3s);
  h.end_job();
  CHECK(one().state == State::switching);
  CHECK(one().image == k_image_a);
  CHECK(one().wanted == k_image_b);
  CHECK(one().owner == "bob");
}

TEST_CASE("core: a snapshot in words") {
  Policy policy;
  policy.give_up_after = 1;
  Harness h(1, policy);
  CHECK(h.core.snapshot().to_string() ==
        "container=payload-0 state=idle id=payload-0 image=- digest=- settled=yes job=- owner=- wanted=- "
        "step=- "
        "trouble=-\nwaiting=0 failures=0 given_up=no\n");
  h.ask(k_image_a);
  h.patch_failed(0);
  CHECK(h.core.snapshot().given_up);
  const std::string text = h.core.snapshot().to_string();
  CHECK(text.find("settled=no") != std::string::npos);
  CHECK(text.find("failures=1 given_up=yes") != std::string::npos);
}

TEST_CASE("core: a snapshot names no image for HTCondor's probe") {
  Harness h;
  h.core.on_bind({.client = 1, .any_image = true, .asked = Image("/var/lib/condor/exit_37")}, h.now);
  REQUIRE(h.state() == State::running);
  CHECK(h.core.snapshot().containers[0].image.empty());
}

TEST_CASE("core: every change of a container's state is told to whoever observes") {
  Harness h;
  std::vector<std::string> seen;
  h.core.observe([&seen](const Container& container, const Transition& transition) {
    seen.push_back(fmt::format("{} {} {}", container.name, name_of(transition.from), name_of(transition.to)));
  });
  h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  CHECK(seen == std::vector<std::string>{"payload-0 idle switching", "payload-0 switching running"});
}

TEST_CASE("core: binds that failed are counted by whose fault it was, and probes are not") {
  Harness h;
  h.ask(k_image_a);
  h.patch_failed(422, "denied request: registry");
  CHECK(h.core.snapshot().binds.user == 1);
  CHECK(h.core.snapshot().binds.infrastructure == 0);
  h.ask(k_image_a);
  h.patch_failed(500);
  CHECK(h.core.snapshot().binds.user == 1);
  CHECK(h.core.snapshot().binds.infrastructure == 1);
  h.core.drain(h.now);
  h.ask("");
  CHECK(h.count<Fail>() == 3);
  CHECK(h.core.snapshot().binds.user + h.core.snapshot().binds.infrastructure == 2);
}

TEST_CASE("core: the pod is learnt once, and a pod without containers is none") {
  Harness h;
  h.core.on_first_pod(h.pod, Core::Earlier::some, h.now);
  h.take();
  CHECK(h.state() == State::idle);
  CHECK(h.count<Patch>() == 0);
  Core core{Policy{}};
  core.on_first_pod({}, Core::Earlier::none, h.now);
  CHECK(core.take_actions().empty());
}

TEST_CASE("core: what the answer to a patch tells of other containers is heard") {
  Harness h(2);
  h.ask(k_image_a);
  h.patched();
  h.goodbye();
  h.hello();
  h.ask(k_image_b);
  h.status(0).image = k_image_a;
  h.status(0).image_id = "docker.io/library/a@" + k_digest_a;
  h.status(0).container_id = "test://" + h.id(0);
  h.patched();
  CHECK(h.noted("event=digest image=" + k_image_a));
}

TEST_CASE("core: with credentials a bare refusal is not the image's fault") {
  for (const bool credentials : {false, true}) {
    Harness h(1, {}, 0, Core::Earlier::none, [&](kube::Pod& pod) { pod.pull_secrets = credentials; });
    h.ask(k_image_a, wire::Verb::test);
    h.patched();
    h.goodbye();
    h.waits(0, "ErrImagePull", "failed to pull " + k_image_a + ": unexpected status: 401 Unauthorized");
    CHECK(h.count<Fail>() == (credentials ? 0 : 1));
  }
}

TEST_CASE("pilot: one that is ending sends its containers nothing but its end") {
  Harness h(2);
  const ClientId lost = h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  h.lose();
  h.patched();
  SUBCASE("whose end is open is told at once") {
    h.core.finish(h.now);
    h.take();
    CHECK(h.last<Fail>().client == lost);
    h.over[0] = true;
    h.hello();
    h.tell();
    CHECK(h.count<Clear>() == 0);
  }
  SUBCASE("whose glue goes with a job") {
    h.ask(k_image_b, wire::Verb::exec, "bob", 20002);
    h.switch_to(1, k_image_b, k_digest_b);
    h.core.finish(h.now);
    h.take();
    const int patches = h.count<Patch>();
    h.lose(1);
    CHECK(h.count<Patch>() == patches);
    CHECK(h.state(1) == State::running);
  }
}

TEST_CASE("pilot: a container that is on its way home under its old glue is missing") {
  Harness h;
  h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  h.end_job();
  CHECK(h.core.containers().missing().empty());
  h.ask("", wire::Verb::exec, "uid:105", 105);
  h.patched();
  CHECK(h.core.snapshot().containers[0].step == "home by goodbye");
  CHECK(h.core.containers().missing() == std::vector<std::string>{"payload-0"});
}

TEST_CASE("pilot: the test switch is one at a time") {
  Policy policy;
  policy.first = Policy::First::prove;
  Harness h(2, policy);
  REQUIRE(h.count<Patch>() == 1);
  h.now += 11s;
  h.tell();
  CHECK(h.count<Patch>() == 1);
}

TEST_CASE("pulse: each question has a number of its own, and none comes before its time") {
  Harness h;
  h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  h.core.on_time(h.now + 19s);
  h.take();
  CHECK(h.count<SendBeat>() == 0);
  h.pass(20s);
  const std::uint64_t first = h.last<SendBeat>().number;
  h.core.on_beat(h.glue[0], {first}, h.now);
  h.core.on_beat(999, {first}, h.now);  // of nobody
  h.core.on_started(999, h.last<Launch>().job, 1, h.now);
  h.pass(20s);
  CHECK(h.last<SendBeat>().number != first);
  h.core.on_beat(h.glue[0], {first}, h.now);  // late
  h.pass(90s);
  CHECK(h.count<KillGlue>() == 1);
}

TEST_CASE("pilot: one that is ending waits for nothing") {
  Harness h(2);
  h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  h.goodbye(1);
  h.core.finish(h.now);
  h.take();
  CHECK_FALSE(h.core.next_deadline().has_value());
  const auto before = h.all.size();
  h.core.on_time(h.now + 1h);
  h.take();
  CHECK(h.all.size() == before);
}

TEST_CASE("pilot: while no container is there the test switch is not tried") {
  Policy policy;
  policy.first = Policy::First::prove;
  Harness h(1, policy);
  h.patch_failed(403);
  h.lose();
  for (int i = 0; i < 4; ++i) h.pass(10s);
  h.tell();
  CHECK(h.count<Patch>() == 1);
  h.hello();
  CHECK(h.count<Patch>() == 2);
}

TEST_CASE("pulse: a glue that does not answer is given up just when its time is over") {
  Harness h;
  h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  const Time asked = h.now + 20s;
  while (h.count<KillGlue>() == 0) h.pass(h.core.next_deadline().value() - h.now);
  CHECK(h.now == asked + 90s);
}

TEST_CASE("pilot: one that is never to give up does not") {
  Policy policy;
  policy.give_up_after = 0;
  Harness h(1, policy);
  for (int i = 0; i < 9; ++i) {
    h.ask(k_image_a);
    h.patch_failed(403);
  }
  CHECK(h.count<GiveUp>() == 0);
}

TEST_CASE("pilot: whoever waits when it gives up is told so") {
  Policy policy;
  policy.give_up_after = 1;
  Harness h(1, policy);
  h.ask(k_image_a);
  h.ask(k_image_b);
  const ClientId waits = h.ask(k_image_b);
  h.patch_failed(403);
  CHECK(h.count<GiveUp>() == 1);
  CHECK(h.last<Fail>().client == waits);
  CHECK(h.last<Fail>().message.starts_with("this pilot takes no more jobs"));
}

TEST_CASE("core: a status that leaves a container out says nothing of it") {
  Harness h(2);
  h.pod.statuses.pop_back();
  h.tell();
  CHECK(h.state(1) == State::idle);
}

TEST_CASE("core: after an earlier agent a container that has yet to connect is told its image at once") {
  Harness h(1, {}, 3);
  h.all.clear();
  h.restart();
  h.core.on_first_pod(h.pod, Core::Earlier::some, h.now);
  h.take();
  CHECK(h.count<Patch>() == 1);
  CHECK(h.state() == State::switching);
}
