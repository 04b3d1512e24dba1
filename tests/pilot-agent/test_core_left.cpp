// What lost jobs have left in the places that the containers of a pod share.

#include <csignal>

#include "tests/pilot-agent/core_harness.hpp"

namespace glidepod::agent {
namespace {

// A job of alice's, user 20001, whose glue is gone; its container comes again at home.
void lose_a_job(Harness& h) {
  h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  h.lose();
  h.patched();
}
void comes_home(Harness& h) {
  h.over[0] = true;
  h.hello();
  h.runs_home(0);
}

TEST_CASE("left: removed once the container has ended, and before the user's next job") {
  Harness h(2);
  lose_a_job(h);
  CHECK(h.core.containers().state_of("payload-1") == State::idle);
  CHECK(h.count<Clear>() == 0);
  comes_home(h);
  CHECK(h.count<Clear>() == 1);
  CHECK(h.last<Clear>().uid == 20001);
  const auto patches = h.count<Patch>();
  h.ask(k_image_a, wire::Verb::exec, "bob");
  CHECK(h.count<Patch>() == patches);
  h.cleared(h.last<Clear>().glue == h.glue[0] ? 0 : 1);
  CHECK(h.count<Patch>() == patches + 1);
  CHECK(h.count<Clear>() == 1);
}

TEST_CASE("left: not while the user has a job, before which glue has cleared") {
  Harness h(2);
  h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  h.ask(k_image_a, wire::Verb::exec, "bob");
  h.switch_to(1, k_image_a, k_digest_a);
  h.lose();
  h.patched();
  comes_home(h);
  CHECK(h.count<Clear>() == 0);
  SUBCASE("it has begun") {
    h.core.on_started(h.glue[1], h.last<Launch>().job, 1, h.now);
    h.end_job(1);
    CHECK(h.count<Clear>() == 0);
  }
  SUBCASE("it has not") {
    wire::LaunchFailed failed;
    failed.job = h.last<Launch>().job;
    h.core.on_launch_failed(h.glue[1], failed, h.now);
    h.take();
    CHECK(h.count<Clear>() == 1);
  }
}

TEST_CASE("left: by a job that could not be cleaned up after") {
  Harness h;
  h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  h.end_job(0, ExitStatus::exited(0), false);
  CHECK(h.count<Clear>() == 0);
  h.lose();
  h.hello();
  CHECK(h.count<Clear>() == 1);
}

TEST_CASE("left: a glue that cannot remove it is asked once") {
  Harness h;
  lose_a_job(h);
  comes_home(h);
  wire::LaunchFailed failed;
  failed.job = h.last<Clear>().job;
  h.core.on_launch_failed(h.glue[0], failed, h.now);
  h.take();
  CHECK(h.count<Clear>() == 1);
  CHECK(h.state() == State::idle);
  h.lose();
  comes_home(h);
  CHECK(h.count<Clear>() == 2);
}

TEST_CASE("left: a launch that it stands in the way of says nothing of the pilot") {
  for (const bool left : {false, true}) {
    Harness h;
    for (int i = 0; i < 6; ++i) {
      h.ask(k_image_a);
      h.switch_to(0, k_image_a, k_digest_a);
      wire::LaunchFailed failed;
      failed.job = h.last<Launch>().job;
      failed.message = "what an earlier job has left cannot be removed";
      failed.left = left;
      h.core.on_launch_failed(h.glue[0], failed, h.now);
      h.take();
    }
    CHECK(h.count<GiveUp>() == (left ? 0 : 1));
    CHECK(h.count<Fail>() == 6);
  }
}

TEST_CASE("left: the next agent knows whose jobs this one has had") {
  Harness h(2);
  CHECK(h.core.users().empty());
  h.ask(k_image_a);
  CHECK(h.core.users().empty());
  h.switch_to(0, k_image_a, k_digest_a);
  CHECK(h.core.users() == std::set<User>{{20001, 0}});
  SUBCASE("one ends well") {
    h.end_job();
    CHECK(h.core.users().empty());
  }
  SUBCASE("one cannot be cleaned up after") {
    h.end_job(0, ExitStatus::exited(0), false);
    CHECK(h.core.users().size() == 1);
  }
  SUBCASE("one is lost, and removed") {
    h.lose();
    CHECK(h.core.users().size() == 1);
    h.patched();
    comes_home(h);
    CHECK(h.core.users() == std::set<User>{{20001, 0, true}});
    h.cleared(h.last<Clear>().glue == h.glue[0] ? 0 : 1);
    CHECK(h.core.users().empty());
  }
}

TEST_CASE("left: not while a container is ready for the user's next job") {
  Harness h(2);
  lose_a_job(h);
  h.ask(k_image_b, wire::Verb::test);
  h.switch_to(1, k_image_b, k_digest_b);
  REQUIRE(h.state(1) == State::reserved);
  comes_home(h);
  CHECK(h.count<Clear>() == 0);
  h.pass(60s);
  CHECK(h.count<Clear>() == 1);
}

TEST_CASE("left: by two jobs of one user, removed once") {
  Harness h(2);
  h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  h.ask(k_image_a, wire::Verb::exec, "bob");
  h.switch_to(1, k_image_a, k_digest_a);
  for (const int i : {0, 1}) {
    h.lose(i);
    h.patched();
    h.over[i] = true;
    h.hello(i);
    h.runs_home(i);
  }
  REQUIRE(h.count<Clear>() == 1);
  h.cleared(h.last<Clear>().glue == h.glue[0] ? 0 : 1);
  CHECK(h.count<Clear>() == 1);
  CHECK(h.core.users().empty());
}

TEST_CASE("left: what one user has left is not forgotten for another's") {
  Harness h(2);
  h.ask(k_image_b, wire::Verb::exec, "bob", 20002);
  h.switch_to(0, k_image_b, k_digest_b);
  h.ask(k_image_a);
  h.switch_to(1, k_image_a, k_digest_a);
  h.lose(1);
  h.patched();
  h.over[1] = true;
  h.hello(1);
  h.runs_home(1);
  wire::LaunchFailed failed;  // its glue cannot
  failed.job = h.last<Clear>().job;
  h.core.on_launch_failed(h.glue[1], failed, h.now);
  h.take();
  h.lose(0);
  CHECK(h.core.users() == std::set<User>{{20001, 0}, {20002, 0}});
}

TEST_CASE("left: a job that was cleaned up after has left nothing, though its end is open") {
  Harness h;
  h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  h.end_job(0, ExitStatus::signaled(15));
  REQUIRE(h.state() == State::draining);
  h.goodbye();
  CHECK(h.core.users().empty());
}

TEST_CASE("left: a glue that is lost while it removes leaves it to the next") {
  Harness h;
  lose_a_job(h);
  comes_home(h);
  REQUIRE(h.count<Clear>() == 1);
  h.lose();
  CHECK(h.core.users() == std::set<User>{{20001, 0}});
  h.patched();
  comes_home(h);
  CHECK(h.count<Clear>() == 2);
}

TEST_CASE("left: not while a container is on its way to the user's next job") {
  Harness h(2);
  lose_a_job(h);
  h.ask(k_image_b);
  REQUIRE(h.state(1) == State::switching);
  comes_home(h);
  CHECK(h.count<Clear>() == 0);
  h.switch_to(1, k_image_b, k_digest_b);
  h.core.on_started(h.glue[1], h.last<Launch>().job, 1, h.now);
  h.end_job(1);
  CHECK(h.count<Clear>() == 0);
}

TEST_CASE("left: by two jobs of one user that are lost together, each once its container has ended") {
  Harness h(2);
  h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  h.ask(k_image_a, wire::Verb::exec, "bob");
  h.switch_to(1, k_image_a, k_digest_a);
  for (const int i : {0, 1}) {
    h.lose(i);
    h.patched();
  }
  h.over[0] = true;
  h.hello(0);
  h.runs_home(0);
  CHECK(h.count<Clear>() == 1);
}

TEST_CASE("left: a glue that is told to end while it removes may still say that it has") {
  Harness h;
  lose_a_job(h);
  comes_home(h);
  h.core.on_goodbye(h.glue[0], h.now);
  h.take();
  CHECK(h.state() == State::clearing);
  SUBCASE("it does") {
    h.cleared();
    CHECK(h.core.users().empty());
  }
  SUBCASE("it cannot") {
    wire::LaunchFailed failed;
    failed.job = h.last<Clear>().job;
    h.core.on_launch_failed(h.glue[0], failed, h.now);
    h.take();
    CHECK(h.core.users().size() == 1);
  }
  SUBCASE("it goes without a word") {
    h.lose();
    CHECK(h.core.users().size() == 1);
    CHECK_FALSE(h.noted("event=glue_lost container=payload-0 state=clearing"));
  }
  CHECK(h.state() == State::absent);
}

TEST_CASE("left: a glue that hangs while it removes is killed") {
  Harness h;
  lose_a_job(h);
  comes_home(h);
  const auto begin_with = [&h](const Policy& policy) {
    h.restart(policy);
    h.core.on_earlier_users({{20001, 0}});
    h.core.on_first_pod(h.pod, Core::Earlier::none, h.now);
    h.hello();
    REQUIRE(h.state() == State::clearing);
  };
  SUBCASE("it answers, and comes to no end") {
    for (int i = 0; i < 9; ++i) {
      CHECK(h.count<KillGlue>() == 0);
      h.pass(10s);
      if (h.count<SendBeat>() > 0) h.core.on_beat(h.glue[0], {h.last<SendBeat>().number}, h.now);
    }
    CHECK(h.noted("event=glue_wedged container=payload-0 job=- reason=\"glue did not end its job\""));
  }
  SUBCASE("its time is over before it is asked whether it is there") {
    Policy policy;
    policy.beat = 300s;
    begin_with(policy);
    h.pass(policy.ending_patience);
  }
  SUBCASE("it does not answer") {
    Policy policy;
    policy.ending_patience = 300s;
    begin_with(policy);
    h.pass(20s);
    h.pass(90s);
    CHECK(h.noted("event=glue_wedged container=payload-0 job=- reason=\"glue does not answer\""));
  }
  CHECK(h.count<KillGlue>() == 1);
  CHECK(h.state() == State::switching);
  CHECK(h.core.users() == std::set<User>{{20001, 0}});
}

TEST_CASE("left: a glue that removes is told when the pilot ends, and is draining to people") {
  Harness h;
  lose_a_job(h);
  comes_home(h);
  CHECK(h.core.containers().busy());
  const Snapshot::One one = h.core.snapshot().containers[0];
  CHECK(one.state == State::draining);
  CHECK(one.job.empty());
  CHECK(one.bound_in == 0us);
  h.core.finish(h.now);
  h.take();
  CHECK(h.last<SignalJob>().job == h.last<Clear>().job);
  CHECK(h.last<SignalJob>().number == SIGKILL);
}

// A new agent of a pod in which user 20001 had a job.
struct Next : Harness {
  explicit Next(bool clearing = false) : Harness(2) {
    restart();
    core.on_earlier_users({{20001, 7, clearing}});
    core.on_first_pod(pod, Core::Earlier::some, now);
    take();
  }
  // It ends, and starts again at home.
  void comes(int i) {
    hello(i);
    answer(last<Patch>([&](const Patch& patch) { return patch.container == name(i); }), {});
    goodbye(i);
    hello(i);
    runs_home(i);
  }
};

TEST_CASE("left: by an earlier agent's job, removed once all that it had has ended") {
  Next h;
  h.comes(0);
  CHECK(h.core.containers().state_of("payload-0") == State::idle);
  CHECK(h.count<Clear>() == 0);
  SUBCASE("nobody comes") {
    h.comes(1);
    CHECK(h.count<Clear>() == 1);
    CHECK(h.last<Clear>().uid == 20001);
    CHECK(h.last<Clear>().gid == 7);
  }
  SUBCASE("the user has a job before: what is not over may yet write") {
    h.ask(k_image_a);
    h.switch_to(0, k_image_a, k_digest_a);
    h.core.on_started(h.glue[0], h.last<Launch>().job, 1, h.now);
    h.comes(1);
    CHECK(h.count<Clear>() == 0);
    h.end_job(0);
    CHECK(h.count<Clear>() == 1);
  }
}

TEST_CASE("left: no job begins while a glue of before may yet remove what its user left") {
  Next h(true);
  CHECK(h.core.users() == std::set<User>{{20001, 7, true}});
  h.comes(0);
  const int patches = h.count<Patch>();
  h.ask(k_image_a);
  CHECK(h.count<Patch>() == patches);
  SUBCASE("its container has ended") {
    h.comes(1);
    CHECK(h.count<Clear>() == 1);
    h.cleared(h.last<Clear>().glue == h.glue[0] ? 0 : 1);
  }
  SUBCASE("its container does not end, and glue gives up in time") {
    h.pass(29s);
    CHECK(h.count<Patch>() == patches);
    h.pass(1s);
  }
  CHECK(h.last<Patch>().image == k_image_a);
}

}  // namespace
}  // namespace glidepod::agent
