#include "tests/pilot-agent/core_harness.hpp"

using namespace glidepod;
using namespace glidepod::agent;

namespace {

constexpr uid_t k_slot = 20001;

ClientId ask_with(Harness& h, const std::function<void(Request&)>& more, const std::string& image = k_image_a,
                  wire::Verb verb = wire::Verb::exec) {
  Request request;
  request.client = ++h.last_id;
  request.verb = verb;
  request.asked = Image(image);
  request.owner = "alice";
  request.uid = k_slot;
  request.job = "1.0";
  more(request);
  h.core.on_bind(request, h.now);
  h.take();
  return request.client;
}
void be_pilot(Request& request) {
  request.pilot = true;
}

// A pod of three payload containers, in the first of which a pilot job runs.
struct Pilots : Harness {
  explicit Pilots(int count = 3, const Policy& policy = {}) : Harness(count, policy) {
    outer = ask_with(*this, be_pilot);
    switch_to(0, k_image_a, k_digest_a);
    outer_job = last<Launch>().job;
  }
  ClientId ask_inner(const std::string& image = k_image_b, wire::Verb verb = wire::Verb::exec, JobId of = 0) {
    return ask_with(
        *this,
        [&](Request& request) {
          request.outer = of != 0 ? of : outer_job;
          request.uid = verb == wire::Verb::test ? k_slot : ++inner_user;
          request.owner = "alice+carol";
          request.job = "1.0+5.0";
        },
        image, verb);
  }
  void end(int i, JobId job, ExitStatus status = ExitStatus::exited(0)) {
    wire::JobEnded ended;
    ended.job = job;
    ended.status = status;
    core.on_job_ended(glue[i], ended, now);
    take();
  }
  ClientId outer = 0;
  JobId outer_job = 0;
  uid_t inner_user = 100000;
};

}  // namespace

TEST_CASE("pilot jobs: only the job's own user in its own container is believed") {
  Pilots h;
  CHECK(h.core.containers().pilot_in(h.id(0), k_slot).value().id == h.outer_job);
  CHECK_FALSE(h.core.containers().pilot_in(h.id(0), 20002));
  CHECK_FALSE(h.core.containers().pilot_in(h.id(0), 0));
  CHECK_FALSE(h.core.containers().pilot_in(h.id(1), k_slot));
  CHECK_FALSE(h.core.containers().pilot_in("", k_slot));
  SUBCASE("a job that is no pilot") {
    h.ask(k_image_b, wire::Verb::exec, "bob", 20002);
    h.switch_to(1, k_image_b, k_digest_b);
    CHECK_FALSE(h.core.containers().pilot_in(h.id(1), 20002));
  }
  SUBCASE("one that ends") {
    wire::Exited exited;
    exited.job = h.outer_job;
    h.core.on_exited(h.glue[0], exited, h.now);
    CHECK_FALSE(h.core.containers().pilot_in(h.id(0), k_slot));
  }
  SUBCASE("one that nobody waits for") {
    h.core.on_client_gone(h.outer, h.now);
    CHECK_FALSE(h.core.containers().pilot_in(h.id(0), k_slot));
  }
}

TEST_CASE("pilot jobs: a pilot whose container cannot be told is not believed") {
  Harness h = Harness::without_ids(2);
  ask_with(h, be_pilot);
  h.switch_to(0, k_image_a, k_digest_a);
  REQUIRE(h.state(0) == State::running);
  CHECK_FALSE(h.core.containers().pilot_in("", k_slot));
}

TEST_CASE("pilot jobs: their jobs run in other containers, and end as they end") {
  Pilots h;
  const ClientId inner = h.ask_inner();
  h.switch_to(1, k_image_b, k_digest_b);
  CHECK(h.last<Launch>().client == inner);
  CHECK(h.last<Launch>().glue == h.glue[1]);
  h.end(1, h.last<Launch>().job, ExitStatus::exited(7));
  CHECK(h.count<JobOver>() == 1);
  CHECK(h.last<Answer>().client == inner);
  CHECK(h.last<Answer>().status == ExitStatus::exited(7));
  CHECK(h.state(0) == State::running);
  // The next one of the same owner finds it warm.
  h.ask_inner();
  CHECK(h.state(1) == State::running);
}

TEST_CASE("pilot jobs: what was made ready by a test is for the same pilot's next job, whatever its user") {
  Pilots h;
  h.ask_inner(k_image_b, wire::Verb::test);
  h.switch_to(1, k_image_b, k_digest_b);
  CHECK(h.state(1) == State::reserved);
  const int launched = h.count<Launch>();
  SUBCASE("of that pilot") {
    h.ask_inner();
    CHECK(h.count<Launch>() == launched + 1);
    CHECK(h.state(1) == State::running);
  }
  SUBCASE("not for HTCondor's own job of that user") {
    h.ask(k_image_b, wire::Verb::exec, "alice+carol", k_slot);
    CHECK(h.state(1) == State::reserved);
  }
  SUBCASE("gone with the pilot") {
    h.end(0, h.outer_job);
    CHECK(h.state(1) == State::idle);
  }
}

TEST_CASE("pilot jobs: they have the smallest container, and leave their jobs the others") {
  const auto sizes = [](kube::Pod& pod) {
    for (std::size_t i = 1; i <= 3; ++i)
      pod.containers[i].size.limit.memory = std::int64_t{i == 2 ? 1 : 8} << 30;
  };
  Harness h(3, {}, 0, Core::Earlier::none, sizes);
  ask_with(h, be_pilot);
  CHECK(h.last<Patch>().container == "payload-1");
  ask_with(h, [](Request&) {});
  CHECK(h.last<Patch>().container == "payload-0");
}

TEST_CASE("pilot jobs: a container without a limit is none of the small ones") {
  Harness h(2, {}, 0, Core::Earlier::none,
            [](kube::Pod& pod) { pod.containers[2].size.limit.memory = std::int64_t{8} << 30; });
  ask_with(h, be_pilot);
  CHECK(h.last<Patch>().container == "payload-1");
}

TEST_CASE("pilot jobs: no more jobs than there are containers") {
  Pilots h;
  h.ask_inner();
  h.switch_to(1, k_image_b, k_digest_b);
  const JobId first = h.last<Launch>().job;
  const ClientId second = h.ask_inner();
  const ClientId third = h.ask_inner();
  CHECK(h.last<Fail>().client == third);
  CHECK(h.last<Fail>().fault == wire::Fault::infrastructure);
  CHECK(h.last<Fail>().message.starts_with("all 3 payload containers of this pod have a job"));
  h.switch_to(2, k_image_b, k_digest_b);
  CHECK(h.last<Launch>().client == second);
  h.end(1, first);
  h.ask_inner();
  CHECK(h.count<Fail>() == 1);
}

TEST_CASE("pilot jobs: one that is over asks for nothing") {
  Pilots h;
  h.end(0, h.outer_job);
  const int patches = h.count<Patch>();
  const ClientId late = h.ask_inner();
  CHECK(h.last<Fail>().client == late);
  CHECK(h.last<Fail>().message == "the pilot job that asks has ended");
  CHECK(h.count<Patch>() == patches);
}

TEST_CASE("pilot jobs: its jobs end with it, and its end is told when nothing of them is left") {
  Pilots h;
  const ClientId inner = h.ask_inner();
  h.switch_to(1, k_image_b, k_digest_b);
  const JobId inner_job = h.last<Launch>().job;
  const ClientId waiting = h.ask_inner(k_image_a);
  SUBCASE("by itself") {
    h.end(0, h.outer_job, ExitStatus::exited(3));
    CHECK(h.last<SignalJob>().job == inner_job);
    CHECK(h.last<SignalJob>().number == SIGKILL);
    CHECK(h.last<Fail>().client == waiting);
    CHECK(h.count<Answer>() == 0);
    CHECK(h.state(0) == State::draining);
    h.end(1, inner_job, ExitStatus::signaled(SIGKILL));
    CHECK(h.last<Answer>().client == h.outer);
    CHECK(h.last<Answer>().status == ExitStatus::exited(3));
    CHECK(h.last<Answer>([&](const Answer& answer) { return answer.client == inner; }).status ==
          ExitStatus::signaled(SIGKILL));
    CHECK(h.state(0) == State::idle);
  }
  SUBCASE("by a signal, of which it is not known at once whether it was the job's own") {
    h.end(0, h.outer_job, ExitStatus::signaled(SIGKILL));
    h.pass(200ms);
    CHECK(h.count<Answer>() == 0);
    h.end(1, inner_job, ExitStatus::signaled(SIGKILL));
    CHECK(h.last<Answer>().client == h.outer);
    CHECK(h.last<Answer>().status == ExitStatus::signaled(SIGKILL));
  }
  SUBCASE("removed") {
    h.core.on_client_gone(h.outer, h.now);
    h.take();
    CHECK(h.last<SignalJob>([&](const SignalJob& sent) { return sent.job == inner_job; }).number == SIGKILL);
    h.end(0, h.outer_job, ExitStatus::signaled(SIGKILL));
    CHECK(h.state(0) == State::draining);
    h.end(1, inner_job, ExitStatus::signaled(SIGKILL));
    CHECK(h.state(0) == State::idle);
  }
  SUBCASE("with its glue") {
    h.lose(0);
    CHECK(h.last<SignalJob>().job == inner_job);
    CHECK(h.last<Fail>().client == waiting);
  }
  SUBCASE("one that does not end delays it for a while") {
    h.end(0, h.outer_job, ExitStatus::exited(3));
    h.pass(89s);
    CHECK(h.count<Answer>() == 0);
    h.pass(1s);
    CHECK(h.last<Answer>([&](const Answer& answer) { return answer.client == h.outer; }).status ==
          ExitStatus::exited(3));
  }
  SUBCASE("stopped from outside meanwhile, its end is its own all the same") {
    h.end(0, h.outer_job, ExitStatus::exited(3));
    h.goodbye(0);
    CHECK(h.last<Answer>().client == h.outer);
    CHECK(h.last<Answer>().status == ExitStatus::exited(3));
  }
}

TEST_CASE("pilot jobs: a pilot in a pilot, until no container is left") {
  Pilots h;
  const ClientId middle = ask_with(
      h,
      [&](Request& request) {
        request.outer = h.outer_job;
        request.uid = 100001;
        request.pilot = true;
      },
      k_image_b);
  h.switch_to(1, k_image_b, k_digest_b);
  const JobId middle_job = h.last<Launch>().job;
  CHECK(h.core.containers().pilot_in(h.id(1), 100001).value().id == middle_job);
  CHECK_FALSE(h.core.containers().pilot_in(h.id(1), k_slot));
  const ClientId deep = h.ask_inner(k_image_a, wire::Verb::exec, middle_job);
  h.switch_to(2, k_image_a, k_digest_a);
  CHECK(h.last<Launch>().client == deep);
  const JobId deep_job = h.last<Launch>().job;
  h.ask_inner(k_image_a, wire::Verb::exec, middle_job);
  CHECK(h.last<Fail>().message.find("all 3 payload containers") == 0);
  // All of it follows the outermost.
  h.core.on_client_gone(h.outer, h.now);
  h.take();
  for (const JobId job : {h.outer_job, middle_job, deep_job})
    CHECK(h.last<SignalJob>([&](const SignalJob& sent) { return sent.job == job; }).number == SIGKILL);
  h.end(0, h.outer_job, ExitStatus::signaled(SIGKILL));
  h.end(1, middle_job, ExitStatus::signaled(SIGKILL));
  CHECK(h.state(0) == State::draining);
  CHECK(h.state(1) == State::draining);
  h.end(2, deep_job, ExitStatus::signaled(SIGKILL));
  for (int i = 0; i < 3; ++i) CHECK(h.state(i) == State::idle);
  CHECK(h.count<JobOver>() == 3);
  CHECK(h.last<Answer>([&](const Answer& answer) { return answer.client == middle; }).status ==
        ExitStatus::signaled(SIGKILL));
}

TEST_CASE("pilot jobs: a pilot is found by its job's number") {
  Pilots h;
  h.ask(k_image_b, wire::Verb::exec, "bob", 20002);
  h.switch_to(1, k_image_b, k_digest_b);
  REQUIRE(h.core.containers().pilot_of(h.outer_job));
  CHECK(h.core.containers().pilot_of(h.outer_job)->id == h.outer_job);
  CHECK(h.core.containers().pilot_of(h.outer_job)->request.owner == "alice");
  CHECK(h.core.containers().pilot_of(h.last<Launch>().job)->request.owner == "bob");
  CHECK_FALSE(h.core.containers().pilot_of(999));
  CHECK_FALSE(h.core.containers().pilot_of(0));
}

TEST_CASE("pilot jobs: a container that was made ready for a job is free for it") {
  Pilots h(2);
  h.ask_inner(k_image_b, wire::Verb::test);
  h.switch_to(1, k_image_b, k_digest_b);
  REQUIRE(h.state(1) == State::reserved);
  const ClientId another = h.ask_inner(k_image_a, wire::Verb::test);
  CHECK(h.last<Fail>().client == another);
  const ClientId inner = h.ask_inner();
  CHECK(h.last<Launch>().client == inner);
}

TEST_CASE("pilot jobs: the last of its jobs releases it, however that ends") {
  Pilots h;
  h.ask_inner();
  h.switch_to(1, k_image_b, k_digest_b);
  const JobId first = h.last<Launch>().job;
  h.ask_inner(k_image_a);
  h.switch_to(2, k_image_a, k_digest_a);
  wire::LaunchFailed failed;
  failed.job = h.last<Launch>().job;
  h.end(0, h.outer_job, ExitStatus::exited(3));
  const auto told = [&h] {
    return std::ranges::any_of(h.all, [&h](const Action& action) {
      const auto* answer = std::get_if<Answer>(&action);
      return answer != nullptr && answer->client == h.outer;
    });
  };
  h.end(1, first, ExitStatus::signaled(SIGKILL));
  CHECK_FALSE(told());
  SUBCASE("by its end") {
    h.end(2, failed.job, ExitStatus::signaled(SIGKILL));
  }
  SUBCASE("by a launch that fails") {
    h.core.on_launch_failed(h.glue[2], failed, h.now);
    h.take();
  }
  SUBCASE("with its glue") {
    h.lose(2);
  }
  CHECK(told());
  CHECK(h.count<JobOver>() == 3);
}

TEST_CASE("pilot jobs: launches of theirs that fail do not end the pilot") {
  Policy policy;
  policy.give_up_after = 1;
  const auto fail = [](Harness& h, int container) {
    wire::LaunchFailed failed;
    failed.job = h.last<Launch>().job;
    failed.fault = wire::Fault::infrastructure;
    h.core.on_launch_failed(h.glue[container], failed, h.now);
    h.take();
  };
  Pilots h(3, policy);
  h.ask_inner();
  h.switch_to(1, k_image_b, k_digest_b);
  fail(h, 1);
  CHECK(h.count<GiveUp>() == 0);
  h.ask(k_image_a, wire::Verb::exec, "bob", 20002);
  h.switch_to(2, k_image_a, k_digest_a);
  fail(h, 2);
  CHECK(h.count<GiveUp>() == 1);
}

TEST_CASE("pilot jobs: one that runs in a drained pilot gets containers for its own jobs as ever") {
  Pilots h;
  const ClientId waits = h.ask_inner();
  h.core.withdraw();
  h.take();
  CHECK(h.count<Fail>() == 0);
  h.switch_to(1, k_image_b, k_digest_b);
  CHECK(h.last<Launch>().client == waits);
  const ClientId late = h.ask_inner();
  CHECK(h.count<Fail>() == 0);
  h.switch_to(2, k_image_b, k_digest_b);
  CHECK(h.last<Launch>().client == late);
  h.ask(k_image_a, wire::Verb::exec, "bob", 20002);
  CHECK(h.count<Fail>() == 1);
}
