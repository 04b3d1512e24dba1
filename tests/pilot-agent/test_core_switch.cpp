#include "tests/pilot-agent/core_harness.hpp"

using namespace glidepod;
using namespace glidepod::agent;

TEST_CASE("switch: goodbye may come before the API's answer") {
  Harness h;
  h.ask(k_image_a);
  h.goodbye();
  h.patched();
  h.hello();
  CHECK(h.count<Launch>() == 1);
}

TEST_CASE("switch: a hello before the API's answer proves nothing by itself") {
  Harness h;
  h.ask(k_image_a);
  h.goodbye();
  h.hello();
  CHECK(h.count<Launch>() == 0);
  h.patched();
  CHECK(h.count<Launch>() == 0);
  SUBCASE("the status shows the image: it was the new one") {
    h.runs(0, k_image_a, "docker.io/library/a@" + k_digest_a);
    CHECK(h.count<Launch>() == 1);
  }
  SUBCASE("the status shows the old one, which then goes") {
    h.runs_home(0);
    CHECK(h.count<Launch>() == 0);
    h.goodbye();
    h.hello();
    h.runs(0, k_image_a, "docker.io/library/a@" + k_digest_a);
    CHECK(h.count<Launch>() == 1);
  }
}

TEST_CASE("switch: a glue that vanishes without goodbye proves nothing, the status must") {
  Harness h;
  h.ask(k_image_a);
  h.patched();
  h.lose();
  h.hello();
  CHECK(h.count<Launch>() == 0);
  SUBCASE("the old image came back first") {
    h.runs_home(0);
    CHECK(h.count<Launch>() == 0);
    h.goodbye();
    h.hello();
    CHECK(h.count<Launch>() == 0);
    h.runs(0, k_image_a, "docker.io/library/a@" + k_digest_a);
    CHECK(h.count<Launch>() == 1);
  }
  SUBCASE("a status from before the crash counts for nothing") {
    h.status(0).image = k_image_a;
    h.tell();
    CHECK(h.count<Launch>() == 0);
  }
  SUBCASE("shown under another name, by way of home") {
    h.runs(0, "docker.io/library/alias:2", "docker.io/library/alias@" + k_digest_a);
    CHECK(h.core.next_deadline() == h.now + 10s);
    h.pass(10s);
    CHECK(h.last<Patch>().image == std::string(k_home_tag).append("1@").append(k_digest_home));
    h.patched();
    h.goodbye();
    h.hello();
    h.runs_home(0);
    // The status cannot prove this image, so a goodbye must, and until the kubelet is at rest it may mean
    // another.
    CHECK(h.core.next_deadline() == h.now + 90s);
    h.tell();
    CHECK(std::ranges::count_if(h.all, [](const Action& action) {
            const auto* note = std::get_if<Note>(&action);
            return note != nullptr && note->text == "event=home container=payload-0";
          }) == 1);
    h.pass(90s);
    CHECK(h.last<Patch>().image == k_image_a);
    h.patched();
    h.goodbye();
    h.hello();
    CHECK(h.count<Launch>() == 1);
  }
}

TEST_CASE("switch: a second hello of one name replaces the first") {
  Harness h;
  h.ask(k_image_a);
  h.patched();
  const GlueId old = h.glue[0];
  h.over[0] = true;
  h.hello();
  CHECK(h.last<DropGlue>().glue == old);
  CHECK(h.count<Launch>() == 0);
  h.core.on_glue_lost(old, h.now);  // the end of the old connection, seen late
  h.runs(0, k_image_a, "docker.io/library/a@" + k_digest_a);
  CHECK(h.last<Launch>().glue == h.glue[0]);
}

TEST_CASE("switch: a name that is not of the pod is refused") {
  Harness h;
  h.core.on_hello(99, "elsewhere", "", h.now);
  h.take();
  CHECK(h.last<DropGlue>().glue == 99);
}

TEST_CASE("switch: what the API refuses leaves the container as it was") {
  struct Row {
    int status;
    const char* message;
    wire::Fault fault;
  };
  for (const Row& row :
       {Row{403, "pods \"pilot-1\" is forbidden: User cannot patch", wire::Fault::infrastructure},
        Row{404, "pods \"pilot-1\" not found", wire::Fault::infrastructure},
        Row{409, "the object has been modified", wire::Fault::infrastructure},
        Row{422, "is forbidden: ValidatingAdmissionPolicy denied request: registry", wire::Fault::user},
        Row{403, "admission webhook \"x\" denied the request: registry", wire::Fault::user}}) {
    CAPTURE(row.message);
    Harness h;
    const ClientId client = h.ask(k_image_a);
    h.patch_failed(row.status, row.message);
    CHECK(h.last<Fail>().client == client);
    CHECK(h.last<Fail>().fault == row.fault);
    CHECK(h.state() == State::idle);
    h.ask(k_image_b);
    CHECK(h.last<Patch>().image == k_image_b);
    h.patched();
    h.goodbye();
    h.hello();
    CHECK(h.count<Launch>() == 1);
  }
}

TEST_CASE("switch: a patch without an answer may have been taken, so the way leads home first") {
  for (const int status : {0, 500, 503}) {
    CAPTURE(status);
    Harness h;
    h.ask(k_image_a);
    h.patch_failed(status, "timed out");
    CHECK(h.last<Fail>().fault == wire::Fault::infrastructure);
    CHECK(h.last<Patch>().image == fmt::format("{}1@{}", k_home_tag, k_digest_home));
    // The first patch was taken after all, and the kubelet acts on it.
    h.patched();
    h.goodbye();
    h.hello();
    h.runs(0, k_image_a, "docker.io/library/a@" + k_digest_a);
    CHECK(h.state() == State::switching);
    h.goodbye();
    h.hello();
    h.runs_home(0);
    CHECK(h.state() == State::idle);
    h.ask(k_image_b);
    h.patched();
    h.goodbye();
    h.hello();
    CHECK(h.count<Launch>() == 0);
    h.runs(0, k_image_b, "docker.io/library/b@" + k_digest_b);
    CHECK(h.count<Launch>() == 1);
  }
}

TEST_CASE("switch: words that are for ever fail at once, and the container recovers") {
  struct Row {
    const char* reason;
    const char* message;
  };
  // The kubelet goes on trying the broken image, and may have luck just as it is told of another.
  enum class Race { none, retry_wins, retry_wins_before_answer };
  const auto check = [](const Row& row, Race race) {
    CAPTURE(row.message);
    Harness h;
    h.ask(k_image_a);
    h.patched();
    h.goodbye();
    h.waits(0, row.reason, row.message);
    CHECK(h.last<Fail>().fault == wire::Fault::user);
    CHECK(h.last<Fail>().message == row.message);
    CHECK(h.last<Patch>().image == k_home_tag + "1@" + k_digest_home);
    switch (race) {
      case Race::none:
        h.patched();
        h.hello();
        CHECK(h.state() == State::switching);
        h.runs_home(0);
        break;
      case Race::retry_wins:
        h.patched();
        h.hello();
        break;
      case Race::retry_wins_before_answer:
        h.hello();
        h.patched();
        break;
    }
    if (race != Race::none) {
      h.runs(0, k_image_a, "docker.io/library/a@" + k_digest_a);
      CHECK(h.state() == State::switching);
      h.goodbye();
      h.hello();
      h.runs_home(0);
    }
    CHECK(h.state() == State::idle);
    CHECK_FALSE(h.core.watching());
    SUBCASE("the next image, at once: the status must prove it") {
      h.ask(k_image_b);
      h.patched();
      h.goodbye();
      h.hello();
      CHECK(h.count<Launch>() == 0);
      h.runs(0, k_image_b, "docker.io/library/b@" + k_digest_b);
      CHECK(h.count<Launch>() == 1);
    }
    SUBCASE("the next image, later: a goodbye proves it again") {
      h.pass(90s);
      CHECK_FALSE(h.core.next_deadline().has_value());
      h.ask(k_image_b);
      h.patched();
      h.goodbye();
      h.hello();
      CHECK(h.count<Launch>() == 1);
    }
  };
  for (const Row& row : {Row{"ErrImagePull", "failed to resolve reference: docker.io/library/a:1: not found"},
                         Row{"ErrImagePull", "manifest unknown: manifest unknown"},
                         Row{"ImagePullBackOff", "Back-off pulling image: pull access denied"},
                         Row{"InvalidImageName", "couldn't parse image reference"},
                         Row{"ErrImageNeverPull", "Container image \"a:1\" is not present"},
                         Row{"RunContainerError", "mkdir /glidepod: not a directory"}}) {
    for (const Race race : {Race::none, Race::retry_wins, Race::retry_wins_before_answer}) check(row, race);
  }
}

TEST_CASE("switch: a request during the way home waits for it and no longer") {
  Harness h;
  h.ask(k_image_a);
  h.patched();
  h.goodbye();
  h.waits(0, "ErrImagePull", "manifest unknown");
  const ClientId next = h.ask(k_image_b);
  CHECK(h.count<Patch>() == 2);
  h.patched();
  h.hello();
  h.runs_home(0);
  CHECK(h.last<Patch>().image == k_image_b);
  h.patched();
  h.goodbye();
  h.hello();
  h.runs(0, k_image_b, "docker.io/library/b@" + k_digest_b);
  CHECK(h.last<Launch>().client == next);
}

TEST_CASE("switch: passing trouble is waited out, but not for ever") {
  Harness h;
  h.ask(k_image_a);
  h.patched();
  h.goodbye();
  h.waits(0, "ErrImagePull", "dial tcp: i/o timeout");
  h.waits(0, "ImagePullBackOff", "Back-off pulling image \"docker.io/library/a:1\"");
  CHECK(h.count<Fail>() == 0);
  CHECK(h.core.next_deadline() == h.now + 120s);
  SUBCASE("it recovers") {
    h.hello();
    CHECK(h.count<Launch>() == 1);
    h.runs(0, k_image_a, "docker.io/library/a@" + k_digest_a);
    h.end_job();
    CHECK_FALSE(h.core.next_deadline().has_value());
  }
  SUBCASE("it does not") {
    h.pass(120s);
    CHECK(h.last<Fail>().fault == wire::Fault::infrastructure);
    // Not the words of the kubelet that waits before it tries again.
    CHECK(h.last<Fail>().message == "dial tcp: i/o timeout");
  }
  SUBCASE("what was said stays known while the kubelet waits") {
    h.waits(0, "ErrImagePull", "lookup nosuch.example: no such host");
    h.waits(0, "CrashLoopBackOff", "back-off 1m20s restarting failed container");
    CHECK(h.core.snapshot().containers[0].trouble == "lookup nosuch.example: no such host");
    h.pass(120s);
    CHECK(h.last<Fail>().message == "lookup nosuch.example: no such host");
  }
}

TEST_CASE("switch: the deadline ends it, and the way home begins") {
  Harness h;
  h.ask(k_image_a);
  h.patched();
  h.goodbye();
  h.pass(599s);
  CHECK(h.count<Fail>() == 0);
  h.pass(1s);
  CHECK(h.last<Fail>().fault == wire::Fault::infrastructure);
  CHECK(h.last<Patch>().image == k_home_tag + "1@" + k_digest_home);
  // The way home fails too: nothing more happens until somebody asks.
  h.pass(600s);
  CHECK(h.state() == State::broken);
  CHECK(h.count<Patch>() == 2);
  CHECK_FALSE(h.core.next_deadline().has_value());
  const ClientId next = h.ask(k_image_b);
  CHECK(h.last<Patch>().image == k_image_b);
  h.patched();
  h.hello();
  CHECK(h.count<Launch>() == 0);
  h.runs(0, k_image_b, "docker.io/library/b@" + k_digest_b);
  CHECK(h.last<Launch>().client == next);
}

TEST_CASE("switch: what is named by its digest is not learnt under another") {
  Harness h;
  const std::string named = "docker.io/library/a@" + k_digest_a;
  h.ask(named);
  h.patched();
  h.goodbye();
  h.hello();
  h.runs(0, "docker.io/library/b:1", "docker.io/library/a@" + k_digest_b);
  h.end_job();
  h.ask(named, wire::Verb::exec, "bob");
  CHECK(h.last<Patch>().image.ends_with("@" + k_digest_a));
}

TEST_CASE("switch: a name that was made up is said to be one") {
  Harness h;
  h.ask(k_image_a);
  CHECK_FALSE(h.last<Patch>().once);
  h.switch_to(0, k_image_a, k_digest_a);
  h.end_job();
  h.ask(k_image_a, wire::Verb::exec, "bob");
  CHECK(h.last<Patch>().once);
}

TEST_CASE("switch: the digest is learnt from the new container and from no other") {
  Harness h;
  h.ask(k_image_a);
  h.patched();
  h.goodbye();
  h.hello();
  CHECK(h.core.watching());
  h.tell();  // still the status of the container before it
  CHECK(h.core.watching());
  SUBCASE("its own") {
    h.runs(0, k_image_a, "docker.io/library/a@" + k_digest_a);
    CHECK_FALSE(h.core.watching());
    h.end_job();
    h.ask(k_image_a, wire::Verb::exec, "bob");
    CHECK(h.last<Patch>().image == "docker.io/library/a:g-1@" + k_digest_a);
  }
  SUBCASE("of a repository that was not asked for: not used") {
    h.runs(0, "mirror.example/a:1", "mirror.example/a@" + k_digest_a);
    CHECK_FALSE(h.core.watching());
    h.end_job();
    h.ask(k_image_a, wire::Verb::exec, "bob");
    // The plain name is what the pod says already: home, and back.
    CHECK(h.last<Patch>().image == k_home_tag + "1@" + k_digest_home);
    h.patched();
    h.goodbye();
    h.hello();
    CHECK(h.last<Patch>().image == k_image_a);
    h.patched();
    h.goodbye();
    h.hello();
    CHECK(h.count<Launch>() == 2);
    CHECK(h.noted("how=fresh"));
  }
  SUBCASE("told before the hello") {
    h.end_job();
    h.ask(k_image_b);
    h.patched();
    h.goodbye();
    h.runs(0, k_image_b, "docker.io/library/b@" + k_digest_b);
    h.status(0).restart_count += 1;  // the first status told of no restart
    h.tell();
    h.hello();
    CHECK_FALSE(h.core.watching());
    h.end_job();
    h.ask(k_image_b, wire::Verb::exec, "bob");
    CHECK(h.last<Patch>().image == "docker.io/library/b:g-1@" + k_digest_b);
  }
  SUBCASE("never told: the watch ends by itself") {
    h.pass(30s);
    CHECK_FALSE(h.core.watching());
  }
}

TEST_CASE("switch: where admission leads to a mirror, its names prove and teach as the image's own") {
  const std::string mirrored = "mirror.example/hub/a";
  Harness h;
  h.ask(k_image_a);
  SUBCASE("proven by goodbye") {
    h.patched(mirrored + ":1");
    h.goodbye();
    h.hello();
    CHECK(h.count<Launch>() == 1);
    h.runs(0, mirrored + ":1", mirrored + "@" + k_digest_a);
  }
  SUBCASE("proven by status") {
    h.goodbye();
    h.hello();
    h.patched(mirrored + ":1");
    CHECK(h.count<Launch>() == 0);
    h.runs(0, mirrored + ":1", mirrored + "@" + k_digest_a);
    CHECK(h.count<Launch>() == 1);
  }
  h.end_job();
  h.ask(k_image_a, wire::Verb::exec, "bob");
  CHECK(h.last<Patch>().image == "docker.io/library/a:g-1@" + k_digest_a);
  h.lose();
  h.hello();
  h.patched(mirrored + ":g-1@" + k_digest_a);
  h.runs(0, mirrored + "@" + k_digest_a, mirrored + "@" + k_digest_a);
  CHECK(h.count<Launch>() == 2);
}

TEST_CASE(
    "switch: where admission drops the tag beside a digest, the pilot says so and waits for the kubelet") {
  const std::string home = "reg.example/pilot@" + k_digest_home;
  Policy policy;
  policy.first = Policy::First::prove;
  Harness h(1, policy);
  CHECK_FALSE(h.core.usable());
  SUBCASE("at the test switch") {
    h.patched(home);
    CHECK(h.noted("event=tags_dropped container=payload-0 asked=reg.example/pilot:g-1@" + k_digest_home));
    h.goodbye();
    h.hello();
    CHECK(h.core.usable());
    // A name that comes again: as long as the kubelet waits, so does the job.
    h.ask("reg.example/a@" + k_digest_a);
    h.patched("reg.example/a@" + k_digest_a);
    h.goodbye();
    h.waits(0, "CrashLoopBackOff", "back-off 5m0s restarting failed container");
    const auto patches = h.count<Patch>();
    h.pass(400s);
    CHECK(h.count<Fail>() == 0);
    CHECK(h.count<Patch>() == patches);
    h.hello();
    CHECK(h.count<Launch>() == 1);
    CHECK(h.core.snapshot().failures == 0);
    CHECK(std::ranges::count_if(h.all, [](const Action& action) {
            const auto* note = std::get_if<Note>(&action);
            return note != nullptr && note->text.starts_with("event=tags_dropped");
          }) == 1);  // it is said once
  }
  SUBCASE("what cannot be pulled is no such pause") {
    h.patched(home);
    h.goodbye();
    h.hello();
    h.ask("reg.example/a@" + k_digest_a);
    h.patched("reg.example/a@" + k_digest_a);
    h.goodbye();
    h.waits(0, "ImagePullBackOff", "Back-off pulling image");
    h.pass(200s);
    CHECK(h.count<Fail>() == 1);
  }
  SUBCASE("a mirror keeps it") {
    h.patched("mirror.example/pilot:g-1@" + k_digest_home);
    h.goodbye();
    h.hello();
    CHECK(h.core.usable());
    CHECK_FALSE(h.noted("event=tags_dropped"));
  }
}

TEST_CASE("switch: an image given by digest is fresh from the first time on") {
  Harness h;
  h.ask("docker.io/library/a@" + k_digest_a);
  CHECK(h.last<Patch>().image == "docker.io/library/a:g-1@" + k_digest_a);
}
