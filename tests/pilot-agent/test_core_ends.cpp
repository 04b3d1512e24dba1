// What a job's end means to HTCondor, and a container that is being stopped.

#include <csignal>

#include "pilot-agent/core/ending.hpp"
#include "tests/pilot-agent/core_harness.hpp"

using namespace glidepod;
using namespace glidepod::agent;

namespace {

ClientId running(Harness& h) {
  const ClientId client = h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  REQUIRE(h.state() == State::running);
  return client;
}

void exit_job(Harness& h, ExitStatus status, std::uint32_t oom_kills = 0) {
  h.core.on_exited(h.glue[0], {h.last<Launch>().job, status, 0, oom_kills, 65536, 65536}, h.now);
  h.end_job(0, status);
}

}  // namespace

TEST_CASE("ends: a job that the kernel killed for memory is held, with the numbers") {
  Harness h;
  const ClientId client = running(h);
  exit_job(h, ExitStatus::signaled(SIGKILL), 1);
  h.pass(200ms);
  CHECK(h.count<Answer>() == 0);
  const Hold& hold = h.last<Hold>();
  CHECK(hold.client == client);
  CHECK(hold.code == k_job_out_of_resources);
  CHECK(hold.subcode == k_subcode_memory);
  CHECK(hold.status == ExitStatus::signaled(SIGKILL));
  CHECK(hold.reason.find("limit of 64 megabytes") != std::string::npos);
  CHECK(h.core.snapshot().shortage.find(": " + hold.reason) != std::string::npos);
  CHECK(h.state() == State::idle);
}

TEST_CASE("ends: a job that outlives what the kernel killed ends as it ends") {
  Harness h;
  running(h);
  exit_job(h, ExitStatus::exited(7), 1);
  CHECK(h.last<Answer>().status == ExitStatus::exited(7));
  CHECK(h.count<Hold>() == 0);
}

TEST_CASE("ends: a job that has more on disk than its slot is killed, and held when nothing of it is left") {
  Harness h;
  h.disk_kib = 1000;
  const ClientId client = running(h);
  const auto seen = [&h](std::int64_t kib) {
    h.pass(20s);
    h.core.on_beat(h.glue[0], {h.last<SendBeat>().number, 0, kib, true}, h.now);
    h.take();
  };
  seen(1000);
  CHECK(h.state() == State::running);
  seen(1001);
  CHECK(h.last<SignalJob>().number == SIGKILL);
  CHECK(h.state() == State::draining);
  CHECK(h.count<Hold>() == 0);
  SUBCASE("it dies") {
    seen(0);  // what it had is being removed
    exit_job(h, ExitStatus::signaled(SIGKILL));
  }
  SUBCASE("it dies while its container is being stopped") {
    h.core.on_goodbye(h.glue[0], h.now);
    exit_job(h, ExitStatus::signaled(SIGKILL));
  }
  SUBCASE("glue is lost before it has cleaned up") {
    h.core.on_exited(h.glue[0], {h.last<Launch>().job, ExitStatus::signaled(SIGKILL), 0, 0, 0, 0}, h.now);
    h.lose();
  }
  SUBCASE("it has ended by itself just before") {
    exit_job(h, ExitStatus::exited(0));
    CHECK(h.last<Answer>().status == ExitStatus::exited(0));
    CHECK(h.count<Hold>() == 0);
    return;
  }
  CHECK(h.count<Answer>() == 0);
  CHECK(h.count<Fail>() == 0);
  const Hold& hold = h.last<Hold>();
  CHECK(hold.client == client);
  CHECK(hold.code == k_job_out_of_resources);
  CHECK(hold.subcode == k_subcode_disk);
  CHECK(hold.reason.find("Usage: 1 megabytes") != std::string::npos);
}

TEST_CASE("ends: a job's disk is of no consequence where its slot's is not known, or it is being stopped") {
  Harness h;
  SUBCASE("not known") {
    running(h);
  }
  SUBCASE("stopped") {
    h.disk_kib = 1000;
    running(h);
    h.core.on_goodbye(h.glue[0], h.now);
  }
  h.pass(20s);
  h.core.on_beat(h.glue[0], {h.last<SendBeat>().number, 0, 5000, true}, h.now);
  h.take();
  CHECK(h.count<SignalJob>() == 0);
  CHECK(h.state() == State::running);
}

TEST_CASE("ends: the kernel's word is enough where glue dies before it has cleaned up") {
  Harness h;
  running(h);
  h.core.on_exited(h.glue[0], {h.last<Launch>().job, ExitStatus::signaled(SIGKILL), 0, 1, 65536, 65536},
                   h.now);
  h.lose();
  h.pass(10s);
  CHECK(h.count<Hold>() == 1);
  CHECK(h.count<Fail>() == 0);
}

TEST_CASE("ends: a container that is being stopped has its job vacated softly, and how it ends is told") {
  Harness h;
  const ClientId client = running(h);
  h.core.on_goodbye(h.glue[0], h.now);
  h.take();
  CHECK(h.last<Vacate>().client == client);
  // Its starter sends the job's own signal.
  h.core.on_client_signal(client, SIGUSR1, h.now);
  h.take();
  CHECK(h.last<SignalJob>().number == SIGUSR1);
  SUBCASE("by its own exit") {
    exit_job(h, ExitStatus::exited(85));
  }
  SUBCASE("by that signal") {
    exit_job(h, ExitStatus::signaled(SIGUSR1));
  }
  SUBCASE("killed when its time is over") {
    h.core.on_client_signal(client, SIGKILL, h.now);
    exit_job(h, ExitStatus::signaled(SIGKILL));
  }
  CHECK(h.last<Answer>().client == client);
  CHECK(h.count<Vacate>() == 1);
  CHECK(h.count<Fail>() == 0);
}

TEST_CASE("ends: a job that ends by itself while its container is being stopped did so") {
  Harness h;
  running(h);
  h.core.on_goodbye(h.glue[0], h.now);
  exit_job(h, ExitStatus::exited(0));
  CHECK(h.last<Answer>().status == ExitStatus::exited(0));
  CHECK(h.count<Fail>() == 0);
}

TEST_CASE("ends: nobody is vacated for a container without a job, or whose job is over") {
  Harness h;
  running(h);
  h.core.on_exited(h.glue[0], {h.last<Launch>().job, ExitStatus::exited(0), 0, 0, 0, 0}, h.now);
  h.core.on_goodbye(h.glue[0], h.now);
  h.take();
  CHECK(h.count<Vacate>() == 0);
}

TEST_CASE("ends: a payload container that has ended with 0, before the pilot has, is the pilot's end") {
  Harness h(2);
  kube::Termination end;
  h.status(0).state = ContainerStatus::State::terminated;
  SUBCASE("stopped, or killed: it starts again") {
    end.exit_code = 143;
    h.status(0).terminated = end;
    h.tell();
    CHECK(h.count<GiveUp>() == 0);
  }
  SUBCASE("final") {
    h.status(0).terminated = end;
    h.tell();
    h.tell();
    CHECK(h.count<GiveUp>() == 1);
    h.ask(k_image_a);
    CHECK(h.count<Fail>() == 1);
  }
  SUBCASE("found so by the next agent") {
    h.status(0).terminated = end;
    Core next{Policy()};
    next.on_first_pod(h.pod, Core::Earlier::some, h.now);
    const auto actions = next.take_actions();
    CHECK(std::ranges::any_of(actions, [](const Action& a) { return std::holds_alternative<GiveUp>(a); }));
  }
}

TEST_CASE("ends: the pod is watched for as long as a payload container is not there") {
  Harness h(2);
  CHECK_FALSE(h.core.watching());
  h.goodbye(0);
  CHECK(h.core.watching());
  h.hello(0);
  h.runs_home(0);
  CHECK_FALSE(h.core.watching());
}

// Each of these was told as the job's own end once.
TEST_CASE("ends: a signal that a job survived explains no later death by another") {
  Harness h;
  const ClientId client = running(h);
  for (const int survived : {SIGUSR1, SIGUSR2, SIGHUP}) {
    h.core.on_client_signal(client, survived, h.now);
    h.take();
  }
  h.pass(1h);
  SUBCASE("a node's shutdown ends it") {
    h.core.on_exited(h.glue[0], {h.last<Launch>().job, ExitStatus::signaled(SIGTERM), 0, 0, 0, 0}, h.now);
    h.pass(100ms);
    h.goodbye();
    CHECK(h.last<Fail>().client == client);
    CHECK(h.count<Hold>() == 0);
  }
  SUBCASE("the kernel kills it for memory") {
    exit_job(h, ExitStatus::signaled(SIGKILL), 1);
    h.pass(200ms);
    CHECK(h.last<Hold>().subcode == k_subcode_memory);
  }
  CHECK(h.count<Answer>() == 0);
}

TEST_CASE("ends: a signal that a job survived for longer than any vacate lasts explains nothing") {
  Harness h;
  const ClientId client = running(h);
  h.core.on_client_signal(client, SIGTERM, h.now);
  SUBCASE("a while later it ends by it") {
    h.pass(9min);
    exit_job(h, ExitStatus::signaled(SIGTERM));
    CHECK(h.last<Answer>().status == ExitStatus::signaled(SIGTERM));
  }
  SUBCASE("an hour later its container is stopped") {
    h.pass(1h);
    exit_job(h, ExitStatus::signaled(SIGTERM));
    h.goodbye();
    CHECK(h.count<Answer>() == 0);
    CHECK(h.last<Fail>().client == client);
  }
}

TEST_CASE("ends: a goodbye while glue still cleans up after a SIGTERM says who sent that") {
  Harness h;
  const ClientId client = running(h);
  h.core.on_exited(h.glue[0], {h.last<Launch>().job, ExitStatus::signaled(SIGTERM), 0, 0, 0, 0}, h.now);
  h.core.on_goodbye(h.glue[0], h.now);
  h.end_job(0, ExitStatus::signaled(SIGTERM));
  h.pass(1s);
  CHECK(h.count<Answer>() == 0);
  CHECK(h.last<Fail>().client == client);
}

TEST_CASE("ends: OOMKilled of an earlier process does not make a SIGTERM the job's own") {
  Harness h;
  const ClientId client = running(h);
  h.core.on_exited(h.glue[0], {h.last<Launch>().job, ExitStatus::signaled(SIGTERM), 0, 0, 0, 0}, h.now);
  const std::string was = "test://" + h.id(0);
  h.lose();
  kube::Termination end{"OOMKilled", "", 137, 0, {}};
  end.container_id = was;
  h.status(0).state = ContainerStatus::State::terminated;
  h.status(0).terminated = end;
  h.tell();
  h.pass(10s);
  CHECK(h.count<Answer>() == 0);
  CHECK(h.count<Hold>() == 0);
  CHECK(h.last<Fail>().client == client);
}
