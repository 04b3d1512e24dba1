#include "tests/pilot-agent/core_harness.hpp"

using namespace glidepod;
using namespace glidepod::agent;

TEST_CASE("jobs: a lost glue is explained by the pod's status") {
  Harness h;
  const ClientId client = h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  h.lose();
  CHECK(h.core.watching());
  CHECK(h.count<Answer>() == 0);
  // Meanwhile the container is on its way home, so that it need not wait for the kubelet's back-off.
  CHECK(h.state() == State::switching);
  h.tell();  // not noticed by the kubelet yet
  CHECK(h.count<Answer>() + h.count<Fail>() == 0);
  const std::string lost = h.status(0).container_id;
  SUBCASE("out of memory: the job's own end") {
    h.status(0).state = ContainerStatus::State::terminated;
    h.status(0).terminated = kube::Termination{"OOMKilled", "", 137, 0, lost};
    h.tell();
    CHECK(h.last<Hold>().client == client);
    CHECK(h.last<Hold>().status == ExitStatus::signaled(SIGKILL));
    CHECK(h.noted("event=out_of_memory"));
  }
  SUBCASE("out of memory, seen when the next one runs already") {
    h.status(0).last_terminated = kube::Termination{"OOMKilled", "", 137, 0, "test://another"};
    h.patched();
    CHECK(h.count<Answer>() == 0);
    h.status(0).last_terminated->container_id = lost;
    h.runs_home(0);
    CHECK(h.last<Hold>().status == ExitStatus::signaled(SIGKILL));
  }
  SUBCASE("anything else is the infrastructure's") {
    h.status(0).last_terminated = kube::Termination{"Error", "", 137, 0, lost};
    h.waits(0, "CrashLoopBackOff", "back-off 10s");
    CHECK(h.last<Fail>().fault == wire::Fault::infrastructure);
  }
  SUBCASE("as is silence") {
    h.pass(10s);
    CHECK(h.last<Fail>().client == client);
    CHECK(h.last<Fail>().fault == wire::Fault::infrastructure);
  }
  SUBCASE("the client goes meanwhile") {
    h.core.on_client_gone(client, h.now);
    h.pass(10s);
    CHECK(h.count<Fail>() == 0);
  }
  CHECK(h.count<Answer>() + h.count<Fail>() <= 1);
}

TEST_CASE("jobs: a container stopped from outside did not end the job") {
  Harness h;
  const ClientId client = h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  SUBCASE("goodbye before the end") {
    h.core.on_goodbye(h.glue[0], h.now);
    h.end_job(0, ExitStatus::signaled(SIGTERM));
  }
  SUBCASE("goodbye right after it") {
    h.end_job(0, ExitStatus::signaled(SIGTERM));
    CHECK(h.count<Answer>() == 0);
    CHECK(h.state() == State::draining);
    h.goodbye();
  }
  SUBCASE("goodbye and no end") {
    h.core.on_goodbye(h.glue[0], h.now);
    h.lose();
  }
  CHECK(h.count<Answer>() == 0);
  CHECK(h.last<Fail>().client == client);
  CHECK(h.last<Fail>().fault == wire::Fault::infrastructure);
  CHECK(h.state() == State::absent);
  // Whoever stopped it may have changed more.
  h.over[0] = true;
  h.hello();
  CHECK(h.state() == State::switching);
  h.runs(0, k_image_a, "docker.io/library/a@" + k_digest_a);
  if (h.count<Clear>() > 0) h.cleared();
  CHECK(h.state() == State::idle);
  CHECK(h.count<Patch>() == 1);
}

TEST_CASE("jobs: a job that kills itself did so") {
  Harness h;
  const ClientId client = h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  h.end_job(0, ExitStatus::signaled(SIGKILL));
  CHECK(h.count<Answer>() == 0);
  h.pass(200ms);
  CHECK(h.last<Answer>().client == client);
  CHECK(h.last<Answer>().status == ExitStatus::signaled(SIGKILL));
  CHECK(h.state() == State::idle);
}

TEST_CASE("jobs: a launch that fails is told with its fault") {
  for (const auto fault : {wire::Fault::user, wire::Fault::infrastructure}) {
    Harness h;
    const ClientId client = h.ask(k_image_a);
    h.switch_to(0, k_image_a, k_digest_a);
    wire::LaunchFailed failed;
    failed.job = h.last<Launch>().job;
    failed.fault = fault;
    failed.message = "no such file";
    h.core.on_launch_failed(h.glue[0], failed, h.now);
    h.take();
    CHECK(h.last<Fail>().client == client);
    CHECK(h.last<Fail>().fault == fault);
    CHECK(h.last<Fail>().message == "no such file");
    CHECK(h.state() == State::idle);
    h.ask(k_image_a);
    CHECK(h.noted(fault == wire::Fault::user ? "how=warm" : "event=switch"));
  }
}

TEST_CASE("jobs: messages about another job are not believed") {
  Harness h;
  h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  wire::JobEnded ended;
  ended.job = 77;
  h.core.on_job_ended(h.glue[0], ended, h.now);
  ended.job = h.last<Launch>().job;
  h.core.on_job_ended(999, ended, h.now);
  wire::LaunchFailed failed;
  failed.job = 77;
  h.core.on_launch_failed(h.glue[0], failed, h.now);
  h.take();
  CHECK(h.state() == State::running);
  CHECK(h.count<Answer>() + h.count<Fail>() == 0);
}

TEST_CASE("jobs: the line of a job's end says what it used") {
  Harness h;
  h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  wire::JobEnded ended;
  ended.job = h.last<Launch>().job;
  ended.user_microseconds = 1'500'000;
  ended.max_rss_kib = 2048;
  ended.processes_killed = 2;
  ended.files_removed = 3;
  h.core.on_job_ended(h.glue[0], ended, h.now);
  h.take();
  CHECK(h.noted(
      "event=ended job=1.0 owner=alice container=payload-0 status=\"exit code 0\" cpu_s=1.500 rss_kib=2048"));
  CHECK(h.noted("killed=2 removed=3"));
}

TEST_CASE("jobs: the answer says what ran where") {
  Harness h;
  h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  h.now += 1s;
  h.end_job();
  const wire::Ran ran = h.last<Answer>().ran;
  CHECK(ran.container == "payload-0");
  CHECK(ran.digest == k_digest_a);
  CHECK(ran.how == "switched");
}

TEST_CASE("jobs: the container that was used longest ago is the one whose job ended first") {
  for (const bool launched : {true, false}) {
    CAPTURE(launched);
    Harness h(2);
    const auto ends = [&](int i, JobId job) {
      h.now += 1s;
      wire::JobEnded ended;
      ended.job = job;
      wire::LaunchFailed failed;
      failed.job = job;
      failed.fault = wire::Fault::user;
      if (launched)
        h.core.on_job_ended(h.glue[i], ended, h.now);
      else
        h.core.on_launch_failed(h.glue[i], failed, h.now);
      h.take();
    };
    h.ask(k_image_a);
    h.switch_to(0, k_image_a, k_digest_a);
    const JobId first = h.last<Launch>().job;
    h.now += 1s;
    h.ask(k_image_b, wire::Verb::exec, "bob", 20002);
    h.switch_to(1, k_image_b, k_digest_b);
    ends(1, h.last<Launch>().job);
    ends(0, first);
    CHECK(h.count<JobOver>() == 2);
    h.ask("docker.io/library/c:1");
    CHECK(h.last<Patch>().container == "payload-1");
  }
}

TEST_CASE("jobs: a job that its container's end has overtaken before it began leaves no container behind") {
  Harness h;
  const ClientId client = h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  h.core.on_goodbye(h.glue[0], h.now);
  wire::LaunchFailed failed;
  failed.job = h.last<Launch>().job;
  h.core.on_launch_failed(h.glue[0], failed, h.now);
  h.take();
  CHECK(h.last<Fail>().client == client);
  CHECK(h.count<JobOver>() == 1);
  CHECK(h.state() == State::absent);
}

TEST_CASE("jobs: a signal for one whose end is being found out changes nothing") {
  Harness h;
  const ClientId client = h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  h.lose();
  h.core.on_client_signal(client, SIGTERM, h.now);
  h.take();
  CHECK(h.count<Answer>() == 0);
  h.pass(10s);
  CHECK(h.last<Fail>().client == client);
}

TEST_CASE("jobs: where no id can be told an end that the status had shown before is not the job's") {
  Harness h(
      1, {}, 1, Core::Earlier::none, [](kube::Pod&) {}, false);
  h.restart();
  for (ContainerStatus& status : h.pod.statuses) status.restart_count = 0;
  h.status(0).restart_count = 1;
  h.status(0).last_terminated = kube::Termination{"OOMKilled", "", 137, 0, "test://before"};
  h.hello();
  h.core.on_first_pod(h.pod, Core::Earlier::none, h.now);
  h.take();
  h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  h.lose();
  h.tell();
  CHECK(h.count<Hold>() == 0);
  h.status(0).restart_count = 2;
  h.tell();
  CHECK(h.count<Hold>() == 1);
}

TEST_CASE("jobs: a hold says what was asked for and last seen, also where glue is lost") {
  for (const bool lost : {false, true}) {
    Harness h;
    h.memory_mib = 77;
    h.ask(k_image_a);
    h.switch_to(0, k_image_a, k_digest_a);
    h.pass(20s);
    h.core.on_beat(h.glue[0], {h.last<SendBeat>().number, 99 << 10}, h.now);
    const std::string was = h.status(0).container_id;
    if (lost) {
      h.lose();
      h.status(0).last_terminated = kube::Termination{"OOMKilled", "", 137, 0, was};
      h.waits(0, "CrashLoopBackOff", "back-off");
    } else {
      h.core.on_exited(h.glue[0], {h.last<Launch>().job, ExitStatus::signaled(SIGKILL), 0, 1, 65536, 65536},
                       h.now);
      h.end_job(0, ExitStatus::signaled(SIGKILL));
      h.pass(200ms);
    }
    REQUIRE(h.count<Hold>() == 1);
    CHECK(h.last<Hold>().reason.find("Peak usage: 99 megabytes. Its request_memory: 77") !=
          std::string::npos);
  }
}

TEST_CASE("jobs: where no id can be told the next end that the status shows is the job's") {
  Harness h = Harness::without_ids();
  h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  h.lose();
  const kube::Termination end{"OOMKilled", "", 137, 0, {}};
  SUBCASE("as the end of what the status is of") {
    h.status(0).state = ContainerStatus::State::terminated;
    h.status(0).terminated = end;
    h.tell();
  }
  SUBCASE("as the last one, while the next is held back") {
    h.waits(0, "CrashLoopBackOff", "back-off");
    CHECK(h.count<Hold>() + h.count<Fail>() == 0);
    h.status(0).last_terminated = end;
    h.tell();
  }
  CHECK(h.count<Hold>() == 1);
}

TEST_CASE("jobs: the line of a job's start says how long its launch took") {
  Harness h;
  h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  h.end_job();
  h.now += 60s;
  h.ask(k_image_a);
  h.now += 5ms;
  h.core.on_started(h.glue[0], h.last<Launch>().job, 77, h.now);
  h.take();
  CHECK(h.noted("event=started job=1.0 container=payload-0 pid=77 ms=5.0"));
}
