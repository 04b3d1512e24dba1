#include "tests/pilot-agent/core_harness.hpp"

using namespace glidepod;
using namespace glidepod::agent;

TEST_CASE("core: a first job is bound by a switch to the plain name") {
  Harness h;
  const ClientId client = h.ask(k_image_a);
  CHECK(h.state() == State::switching);
  CHECK_FALSE(h.core.containers().busy());
  CHECK(h.last<Patch>().container == "payload-0");
  CHECK(h.last<Patch>().image == k_image_a);
  CHECK(h.count<Launch>() == 0);
  h.switch_to(0, k_image_a, k_digest_a);
  CHECK(h.state() == State::running);
  CHECK(h.core.containers().busy());
  CHECK(h.last<Launch>().client == client);
  CHECK(h.last<Launch>().glue == h.glue[0]);
  CHECK(h.noted(
      "event=bound job=1.0 owner=alice image=docker.io/library/a:1 container=payload-0 how=switched"));
  h.end_job(0, ExitStatus::exited(3));
  CHECK(h.last<Answer>().client == client);
  CHECK(h.last<Answer>().status == ExitStatus::exited(3));
  CHECK(h.state() == State::idle);
  CHECK_FALSE(h.core.watching());
  CHECK_FALSE(h.core.next_deadline().has_value());
  const Binds binds = h.core.snapshot().binds;
  CHECK(binds.by_how == std::array<std::uint64_t, 4>{0, 0, 1, 0});
  CHECK(binds.user + binds.infrastructure == 0);
}

TEST_CASE("core: who may use a warm container") {
  struct Row {
    Policy::Reuse reuse;
    const char* owner;
    bool clean;
    const char* how;
  };
  for (const Row& row : {Row{Policy::Reuse::owner, "alice", true, "how=warm"},
                         Row{Policy::Reuse::owner, "bob", true, "how=fresh"},
                         Row{Policy::Reuse::owner, "alice", false, "how=fresh"},
                         Row{Policy::Reuse::never, "alice", true, "how=fresh"}}) {
    CAPTURE(row.how);
    CAPTURE(row.owner);
    Policy policy;
    policy.reuse = row.reuse;
    Harness h(1, policy);
    h.ask(k_image_a);
    h.switch_to(0, k_image_a, k_digest_a);
    h.end_job(0, ExitStatus::exited(0), row.clean);
    const int patches = h.count<Patch>();
    h.all.clear();
    h.ask(k_image_a, wire::Verb::exec, row.owner);
    if (std::string(row.how) == "how=warm") {
      CHECK(h.count<Patch>() == 0);
    } else {
      // The same content by a string never used before.
      CHECK(patches == 1);
      CHECK(h.last<Patch>().image == "docker.io/library/a:g-1@" + k_digest_a);
      h.switch_to(0, k_image_a, k_digest_a);
    }
    CHECK(h.count<Launch>() == 1);
    CHECK(h.noted(row.how));
    const auto hows = h.core.snapshot().binds.by_how;
    CHECK(hows == (std::string(row.how) == "how=warm" ? std::array<std::uint64_t, 4>{1, 0, 1, 0}
                                                      : std::array<std::uint64_t, 4>{0, 1, 1, 0}));
  }
}

TEST_CASE("core: a test reserves the container for its caller, for a while") {
  Harness h;
  const ClientId test = h.ask(k_image_a, wire::Verb::test);
  h.switch_to(0, k_image_a, k_digest_a);
  CHECK(h.last<Answer>().client == test);
  CHECK(h.last<Answer>().status == ExitStatus::exited(0));
  CHECK(h.state() == State::reserved);
  CHECK(h.noted("event=prepared"));
  SUBCASE("another waits until the caller has had it") {
    h.ask(k_image_a, wire::Verb::exec, "bob", 20002);
    CHECK(h.count<Launch>() == 0);
    const ClientId exec = h.ask(k_image_a);
    CHECK(h.last<Launch>().client == exec);
    CHECK(h.noted(
        "event=bound job=1.0 owner=alice image=docker.io/library/a:1 container=payload-0 how=switched"));
    h.end_job();
    CHECK(h.last<Patch>().image == "docker.io/library/a:g-1@" + k_digest_a);
  }
  SUBCASE("another has it when the time is over") {
    const ClientId other = h.ask(k_image_a, wire::Verb::exec, "bob", 20002);
    h.pass(59s);
    CHECK(h.count<Launch>() == 0);
    h.pass(1s);
    CHECK(h.last<Launch>().client == other);
  }
  SUBCASE("the caller asks for another image") {
    h.ask(k_image_b);
    CHECK(h.last<Patch>().image == k_image_b);
  }
  SUBCASE("its glue goes") {
    h.goodbye();
    CHECK(h.state() == State::absent);
    // Nobody here has stopped it, so it is looked at before it is used.
    h.hello();
    CHECK(h.state() == State::switching);
    h.runs(0, k_image_a, "docker.io/library/a@" + k_digest_a);
    CHECK(h.state() == State::idle);
  }
  SUBCASE("at the test the owner was not known yet") {
    const ClientId exec = h.ask(k_image_a, wire::Verb::exec, "carol");
    CHECK(h.last<Launch>().client == exec);
  }
}

TEST_CASE("core: what a container ran is learnt after its next switch has begun, too") {
  // A job of a moment: the kubelet tells of its container only when it ends that.
  Harness h;
  h.ask(k_image_a);
  h.patched();
  h.goodbye();
  h.hello();
  h.end_job();
  const std::string of_a = "test://" + h.id(0);
  CHECK(h.core.watching());
  h.ask(k_image_b);
  CHECK_FALSE(h.core.watching());  // the API has to answer first
  h.patched();
  const auto told = [&](const std::string& id, const std::string& image) {
    h.status(0).state = ContainerStatus::State::running;
    h.status(0).container_id = id;
    h.status(0).image = image;
    h.status(0).image_id = "docker.io/library/a@" + k_digest_a;
    h.tell();
  };
  SUBCASE("by its own status") {
    told(of_a, k_image_a);
    CHECK(h.noted("event=digest image=" + k_image_a + " digest=" + k_digest_a));
    h.goodbye();
    h.hello();
    h.end_job();
    h.ask(k_image_a);
    CHECK(h.last<Patch>().image == "docker.io/library/a:g-1@" + k_digest_a);
  }
  SUBCASE("not by another container's") {
    told("test://other", k_image_a);
    CHECK_FALSE(h.noted("event=digest"));
  }
  SUBCASE("not by one that names another image") {
    told(of_a, "docker.io/library/c:1");
    CHECK_FALSE(h.noted("event=digest"));
  }
}

TEST_CASE("core: requests wait in order and take the coldest container") {
  Harness h(2);
  const ClientId first = h.ask(k_image_a);
  const ClientId second = h.ask(k_image_b);
  const ClientId third = h.ask(k_image_b);
  const ClientId fourth = h.ask(k_image_a);
  CHECK(h.count<Patch>() == 2);
  for (int i = 0; i < 2; ++i) {
    h.patched_attempt(static_cast<std::uint64_t>(i) + 1);
    h.goodbye(i);
    h.hello(i);
  }
  CHECK(h.count<Launch>() == 2);
  CHECK(h.last<Launch>().client == second);
  h.runs(0, k_image_a, "docker.io/library/a@" + k_digest_a);
  h.runs(1, k_image_b, "docker.io/library/b@" + k_digest_b);
  wire::JobEnded ended;
  ended.job = 1;
  h.now += 1s;
  h.core.on_job_ended(h.glue[0], ended, h.now);
  h.take();
  // The third comes before the fourth, though the free container has the fourth's image.
  CHECK(h.last<Patch>().image == "docker.io/library/b:g-1@" + k_digest_b);
  ended.job = 2;
  h.core.on_job_ended(h.glue[1], ended, h.now);
  h.take();
  CHECK(h.last<Patch>().image == "docker.io/library/a:g-2@" + k_digest_a);
  h.patched_attempt(3);
  h.goodbye(0);
  h.hello(0);
  CHECK(h.last<Launch>().client == third);
  h.patched_attempt(4);
  h.goodbye(1);
  h.hello(1);
  CHECK(h.last<Launch>().client == fourth);
  CHECK(first != fourth);
}

TEST_CASE("core: a probe runs where nobody's job has been, and leaves no trace") {
  Harness h;
  const ClientId probe = h.ask("", wire::Verb::exec, "uid:105", 105);
  CHECK(h.count<Patch>() == 0);
  CHECK(h.last<Launch>().client == probe);
  h.end_job(0, ExitStatus::exited(37));
  CHECK(h.last<Answer>().status == ExitStatus::exited(37));
  h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  h.end_job();
  // Alice's files may be there.
  const ClientId late = h.ask("", wire::Verb::exec, "uid:105", 105);
  CHECK(h.last<Patch>().image == "reg.example/pilot:g-1@" + k_digest_home);
  h.patched();
  h.goodbye();
  h.hello();
  CHECK(h.last<Launch>().client == late);
}

TEST_CASE("core: an image without a file is its user's fault, whoever asks for it") {
  Harness h;
  const auto refused = [&h](ClientId client) {
    const Fail fail = h.last<Fail>();
    return fail.client == client && fail.fault == wire::Fault::user &&
           fail.message.starts_with("the image has no file");
  };
  const ClientId first = h.ask(k_image_a, wire::Verb::test);
  h.patched();
  h.goodbye();
  h.hello(0, true);
  CHECK(refused(first));
  CHECK(h.state() == State::idle);
  CHECK(refused(h.ask(k_image_a)));
  CHECK(refused(h.ask(k_image_a, wire::Verb::exec, "bob", 20002)));
  CHECK(h.count<Launch>() == 0);
  // The container has another image then.
  const ClientId good = h.ask(k_image_b);
  h.switch_to(0, k_image_b, k_digest_b);
  CHECK(h.last<Launch>().client == good);
}

TEST_CASE("core: before the pod is known probes and jobs wait") {
  Harness h(0);
  Core core{Policy{}};
  core.on_hello(1, "payload-0", "", h.now);
  Request job;
  job.client = 2;
  job.asked = Image(k_image_a);
  core.on_bind(job, h.now);
  Request probe;
  probe.client = 3;
  probe.any_image = true;
  core.on_bind(probe, h.now);
  int launches = 0;
  for (const auto& action : core.take_actions()) launches += std::holds_alternative<Launch>(action) ? 1 : 0;
  CHECK(launches == 0);
  CHECK(core.next_deadline() == h.now + 600s);
  core.on_time(h.now + 600s);
  bool failed = false;
  for (const auto& action : core.take_actions())
    if (const auto* fail = std::get_if<Fail>(&action))
      failed |= fail->client == 2 && fail->fault == wire::Fault::infrastructure;
  CHECK(failed);
}

TEST_CASE("core: a client that goes away leaves nothing behind") {
  Harness h;
  const ClientId first = h.ask(k_image_a);
  SUBCASE("while it waits") {
    const ClientId second = h.ask(k_image_b);
    h.core.on_client_gone(second, h.now);
    h.switch_to(0, k_image_a, k_digest_a);
    h.end_job();
    CHECK(h.count<Patch>() == 1);
  }
  SUBCASE("during the switch: it is finished for whoever comes next") {
    h.core.on_client_gone(first, h.now);
    h.switch_to(0, k_image_a, k_digest_a);
    CHECK(h.state() == State::idle);
    CHECK(h.count<Launch>() == 0);
    h.ask(k_image_a, wire::Verb::exec, "bob");
    CHECK(h.noted("how=warm"));
  }
  SUBCASE("during the job: the job is killed") {
    h.switch_to(0, k_image_a, k_digest_a);
    h.core.on_client_gone(first, h.now);
    h.take();
    CHECK(h.last<SignalJob>().number == SIGKILL);
    CHECK(h.last<SignalJob>().job == h.last<Launch>().job);
    CHECK(h.state() == State::draining);
    h.end_job(0, ExitStatus::signaled(SIGKILL));
    CHECK(h.state() == State::idle);
    CHECK(h.count<Answer>() == 0);
  }
}

TEST_CASE("core: signals reach the job, or end a request that has none yet") {
  Harness h;
  const ClientId client = h.ask(k_image_a);
  SUBCASE("in the queue or during the switch") {
    const ClientId waiting = h.ask(k_image_b);
    for (const ClientId each : {client, waiting}) {
      h.core.on_client_signal(each, SIGCONT, h.now);
      h.take();
      CHECK(h.count<Answer>() == (each == client ? 0 : 1));
      h.core.on_client_signal(each, SIGTERM, h.now);
      h.take();
      CHECK(h.last<Answer>().client == each);
      CHECK(h.last<Answer>().status == ExitStatus::signaled(SIGTERM));
    }
    h.switch_to(0, k_image_a, k_digest_a);
    CHECK(h.count<Launch>() == 0);
  }
  SUBCASE("while it runs") {
    h.switch_to(0, k_image_a, k_digest_a);
    h.core.on_client_signal(client, SIGTSTP, h.now);
    h.take();
    CHECK(h.last<SignalJob>().number == SIGTSTP);
    h.core.on_client_signal(client, SIGTERM, h.now);
    h.take();
    h.end_job(0, ExitStatus::signaled(SIGTERM));
    CHECK(h.last<Answer>().status == ExitStatus::signaled(SIGTERM));
  }
}

TEST_CASE("core: a pilot that an operator has drained has its last jobs end, and takes no other") {
  Harness h(3);
  const ClientId running = h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  const ClientId waits = h.ask(k_image_b);
  h.core.withdraw();
  h.take();
  CHECK(h.count<Fail>() == 1);
  CHECK(h.last<Fail>().client == waits);
  CHECK(h.last<Fail>().fault == wire::Fault::infrastructure);
  CHECK(h.count<SignalJob>() == 0);
  CHECK(h.core.containers().busy());
  // The next job of the same claim: given back to the queue, never held.
  const ClientId late = h.ask(k_image_a);
  CHECK(h.last<Fail>().client == late);
  CHECK(h.last<Fail>().of_job);
  CHECK(h.last<Fail>().fault == wire::Fault::infrastructure);
  CHECK(h.count<Hold>() == 0);
  h.end_job(0, ExitStatus::exited(3));
  CHECK(h.last<Answer>().client == running);
  CHECK(h.last<Answer>().status == ExitStatus::exited(3));
  CHECK_FALSE(h.core.containers().busy());
  h.ask(k_image_a);
  CHECK(h.count<Fail>() == 3);
  CHECK(h.count<Launch>() == 1);
}

TEST_CASE("core: a pilot that is about to end refuses whose job has not begun, and no other") {
  Harness h(3);
  const ClientId running = h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  const ClientId second = h.ask(k_image_b);
  h.core.drain(h.now);
  h.take();
  CHECK(h.count<Fail>() == 1);
  CHECK(h.last<Fail>().client == second);
  CHECK(h.last<Fail>().fault == wire::Fault::infrastructure);
  CHECK(h.count<SignalJob>() == 0);
  const ClientId late = h.ask(k_image_a);
  CHECK(h.last<Fail>().client == late);
  CHECK(h.last<Fail>().of_job);
  h.ask("");
  CHECK_FALSE(h.last<Fail>().of_job);
  h.end_job(0, ExitStatus::exited(3));
  CHECK(h.last<Answer>().client == running);
  CHECK(h.last<Answer>().status == ExitStatus::exited(3));
}

TEST_CASE("core: a container whose image nobody can pull is told the pilot's own before the end") {
  Harness h(3);
  const ClientId client = h.ask(k_image_a);
  h.patched();
  h.goodbye();
  h.ask(k_image_b);
  h.patched();
  h.goodbye(1);
  h.core.on_client_gone(client, h.now);
  h.waits(0, "ErrImagePull", "429 Too Many Requests");
  const auto patches = h.count<Patch>();
  h.core.call_home(h.now);
  h.take();
  // One that may yet start is waited for.
  CHECK(h.count<Patch>() == patches + 1);
  CHECK(h.last<Patch>().container == "payload-0");
  CHECK(h.last<Patch>().image.starts_with("reg.example/pilot:"));
  CHECK(h.core.containers().missing() == std::vector<std::string>{"payload-0", "payload-1"});
  h.patched();
  h.hello(0);
  h.hello(1);
  CHECK(h.core.containers().missing().empty());
  h.core.finish(h.now);
  h.take();
  CHECK(h.count<FinishGlue>() == 3);
}

TEST_CASE("core: at the end jobs are killed, glues sent home and requests refused") {
  Harness h(3);
  h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  const ClientId second = h.ask(k_image_b);
  h.core.finish(h.now);
  h.take();
  CHECK(h.last<SignalJob>().number == SIGKILL);
  CHECK(h.count<FinishGlue>() == 3);
  CHECK(h.last<Fail>().client == second);
  const ClientId late = h.ask(k_image_a);
  CHECK(h.last<Fail>().client == late);
  CHECK(h.last<Fail>().fault == wire::Fault::infrastructure);
}

TEST_CASE(
    "core: a glue that was sent home is waited for, and one that somebody else stops just then will be "
    "back") {
  Harness h(2);
  h.core.finish(h.now);
  h.take();
  CHECK(h.core.containers().ending());
  CHECK(h.core.containers().unended().size() == 2);
  h.core.on_glue_lost(h.glue[0], h.now);
  CHECK(h.core.containers().ending());
  SUBCASE("gone") {
    h.core.on_glue_lost(h.glue[1], h.now);
    CHECK(h.core.containers().unended().empty());
  }
  SUBCASE("stopped by the kubelet before it heard of the end") {
    h.core.on_goodbye(h.glue[1], h.now);
    h.core.on_glue_lost(h.glue[1], h.now);
    CHECK(h.core.containers().unended() == std::vector<std::string>{"payload-1"});
  }
  CHECK_FALSE(h.core.containers().ending());
}

TEST_CASE("core: a container whose glue says goodbye gets no job, though its connection still stands") {
  Harness h(1);
  h.core.on_goodbye(h.glue[0], h.now);
  h.take();
  CHECK(h.state() == State::absent);
  h.core.on_glue_lost(h.glue[0], h.now);
  h.take();
  CHECK_FALSE(h.noted("event=glue_lost"));
}

// The job's processes take their time; then the kubelet starts it again.
TEST_CASE("core: a container that is being stopped when the pilot's command ends will be back") {
  Harness h(2);
  h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  h.core.on_goodbye(h.glue[0], h.now);
  h.core.call_home(h.now);
  h.take();
  CHECK(h.core.containers().missing() == std::vector<std::string>{"payload-0"});
  h.core.finish(h.now);
  h.core.on_glue_lost(h.glue[0], h.now);
  h.core.on_glue_lost(h.glue[1], h.now);
  CHECK(h.core.containers().unended() == std::vector<std::string>{"payload-0"});
  h.hello(0);
  h.core.on_glue_lost(h.glue[0], h.now);
  CHECK(h.core.containers().unended().empty());
}

// Its glue would be stopped after Finish, and started again with nobody to end it.
TEST_CASE("core: a container that is told another image, and has yet to get it, is missing at the end") {
  Harness h(2);
  const ClientId client = h.ask(k_image_a);
  SUBCASE("the API has yet to answer") {
    h.core.on_client_gone(client, h.now);
    h.core.call_home(h.now);
    CHECK(h.core.containers().missing() == std::vector<std::string>{"payload-0"});
    h.patch_failed(403);
    CHECK(h.core.containers().missing().empty());
  }
  SUBCASE("the kubelet has yet to act on it") {
    h.patched();
    h.core.on_client_gone(client, h.now);
    h.core.call_home(h.now);
    CHECK(h.core.containers().missing() == std::vector<std::string>{"payload-0"});
    h.goodbye();
    CHECK(h.core.containers().missing() == std::vector<std::string>{"payload-0"});
    h.hello();
    CHECK(h.core.containers().missing().empty());
  }
  SUBCASE("nor has it in time, and the way home fails") {
    h.patched();
    h.pass(600s);
    h.patch_failed(403);
    CHECK(h.state(0) == State::broken);
    h.core.call_home(h.now);
    CHECK(h.core.containers().missing() == std::vector<std::string>{"payload-0"});
  }
}

TEST_CASE("core: a reservation ends when its slot asks for something else") {
  Harness h(2);
  h.ask(k_image_a, wire::Verb::test);
  h.switch_to(0, k_image_a, k_digest_a);
  CHECK(h.state() == State::reserved);  // and the job is removed
  SUBCASE("another image") {
    h.ask(k_image_b, wire::Verb::test);
    CHECK(h.state(0) == State::idle);
    CHECK(h.state(1) == State::switching);
  }
  SUBCASE("the same for another owner, who may have it as nobody has used it") {
    h.ask(k_image_a, wire::Verb::test, "bob");
    CHECK(h.state(0) == State::reserved);
    CHECK(h.count<Answer>() == 2);
  }
  SUBCASE("another slot's request leaves it alone") {
    h.ask(k_image_b, wire::Verb::test, "alice", 20002);
    CHECK(h.state(0) == State::reserved);
  }
  SUBCASE("so does HTCondor's probe") {
    h.ask("", wire::Verb::exec, "uid:0");
    CHECK(h.state(0) == State::reserved);
  }
}

TEST_CASE("core: a reservation ends by a request of its own slot alone, as far as slots are known") {
  struct Row {
    const char *reserved, *asks;
    bool stays;
  };
  for (const Row& row : {Row{"slot1", "slot1", false}, Row{"slot1", "slot2", true}, Row{"slot1", "", false},
                         Row{"", "slot2", false}}) {
    CAPTURE(row.reserved);
    CAPTURE(row.asks);
    Harness h(2);
    h.slot = row.reserved;
    h.ask(k_image_a, wire::Verb::test);
    h.switch_to(0, k_image_a, k_digest_a);
    REQUIRE(h.state(0) == State::reserved);
    h.slot = row.asks;
    h.ask(k_image_b, wire::Verb::test);
    CHECK(h.state(0) == (row.stays ? State::reserved : State::idle));
  }
}

TEST_CASE("core: of two containers that have the image, a job has the one that the kubelet is done with") {
  for (const int settled : {0, 1}) {
    CAPTURE(settled);
    Harness h(2);
    for (int i = 0; i < 2; ++i) {
      h.ask(k_image_a, wire::Verb::exec, i == 0 ? "alice" : "bob");
      h.switch_to(i, k_image_a, k_digest_a);
      h.end_job(i);
    }
    h.goodbye(1 - settled);
    h.hello(1 - settled);
    h.runs(1 - settled, k_image_a, "docker.io/library/a@" + k_digest_a);
    h.lose(settled);
    h.hello(settled);
    for (int i = 0; i < 2; ++i) {
      REQUIRE(h.state(i) == State::idle);
      REQUIRE(h.core.snapshot().containers[static_cast<std::size_t>(i)].settled == (i == settled));
    }
    h.ask(k_image_a);
    CHECK(h.state(settled) == State::running);
  }
}

TEST_CASE("core: of two containers that have the image and are as good, a job has the first") {
  Harness h(2);
  for (int i = 0; i < 2; ++i) {
    h.ask(k_image_a, wire::Verb::exec, i == 0 ? "alice" : "bob");
    h.switch_to(i, k_image_a, k_digest_a);
    h.end_job(i);
  }
  for (int i = 0; i < 2; ++i) {
    h.lose(i);
    h.hello(i);
  }
  h.ask(k_image_a);
  CHECK(h.state(0) == State::running);
}
