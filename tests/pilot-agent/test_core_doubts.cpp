// Images that cannot be had in words that nobody knows: the pilot tries its own, and works on.
#include "tests/pilot-agent/core_harness.hpp"

using namespace glidepod;
using namespace glidepod::agent;

namespace {

const std::string k_doubted = "reg.example/bad:1";
constexpr const char* k_words = "something that nobody has seen yet";

// A job whose image the kubelet cannot get; the container has gone, and the bind has failed.
ClientId fails(Harness& h, const std::string& image = k_doubted, const std::string& words = k_words,
               wire::Verb verb = wire::Verb::test) {
  const ClientId client = h.ask(image, verb);
  h.patched();
  h.goodbye();
  h.waits(0, "ErrImagePull", words);
  h.pass(120s);
  return client;
}

void comes_home(Harness& h) {
  CHECK(h.last<Patch>().image.ends_with("@" + k_digest_home));
  h.patched();
  h.hello();
  h.runs_home(0);
  h.pass(90s);
}

}  // namespace

TEST_CASE("doubts: images that cannot be had in unknown words end no pilot whose own image starts") {
  Harness h;
  for (int i = 0; i < 12; ++i) {
    const ClientId client = fails(h, "reg.example/bad:" + std::to_string(i));
    CHECK(h.last<Fail>().client == client);
    CHECK(h.last<Fail>().fault == wire::Fault::doubt);
    CHECK(h.last<Fail>().message == k_words);
    comes_home(h);
  }
  CHECK(h.count<GiveUp>() == 0);
  CHECK(h.core.snapshot().failures == 0);
  const ClientId good = h.ask(k_image_a, wire::Verb::exec, "bob", 20002);
  h.switch_to(0, k_image_a, k_digest_a);
  CHECK(h.last<Launch>().client == good);
}

TEST_CASE("doubts: a pilot whose own image does not start either is at fault, and the image is not") {
  Harness h;
  for (int i = 0; i < 5; ++i) {
    CHECK(h.count<GiveUp>() == 0);
    h.ask(k_doubted, wire::Verb::test);
    if (h.last<Patch>().image != k_doubted) {  // the way home is tried again
      h.patched();
      h.pass(600s);
      continue;
    }
    h.patched();
    h.goodbye();
    h.waits(0, "RunContainerError", "exec /glidepod/bin/glue: exec format error");
    h.pass(30s);
    CHECK(h.last<Fail>().fault == wire::Fault::doubt);
    h.patched();
    h.waits(0, "RunContainerError", "exec /glidepod/bin/glue: exec format error");
    h.pass(120s);
  }
  CHECK(h.count<GiveUp>() == 1);
  CHECK(h.core.snapshot().failures == 5);
}

TEST_CASE("doubts: an image in doubt waits by itself, longer each time, and is held at the third") {
  Harness h;
  const auto started = h.now;
  fails(h);
  comes_home(h);
  REQUIRE(h.core.snapshot().doubts.size() == 1);
  CHECK(h.core.snapshot().doubts[0].named == "docker://" + k_doubted);
  CHECK(h.core.snapshot().doubts[0].until > started);
  h.pass(-60s);  // the pause of a minute began with the failure
  for (int i = 0; i < 2; ++i) {
    const int patches = h.count<Patch>();
    const ClientId early = h.ask(k_doubted);
    CHECK(h.last<Fail>().client == early);
    CHECK(h.last<Fail>().fault == wire::Fault::infrastructure);
    CHECK(h.last<Fail>().message.find("this pilot tries the image again in") != std::string::npos);
    CHECK(h.last<Fail>().message.find(k_words) != std::string::npos);
    CHECK(h.count<Patch>() == patches);
    h.pass(120s);
    fails(h);
    if (i == 0) CHECK(h.last<Fail>().fault == wire::Fault::doubt);
    comes_home(h);
    h.pass(-60s);
  }
  CHECK(h.last<Fail>().fault == wire::Fault::user);
  CHECK(h.last<Fail>().message.find(std::string(k_words) + " (3 times in") == 0);
  CHECK(started < h.now);
}

TEST_CASE("doubts: one that starts after all is in doubt no more") {
  Harness h;
  fails(h);
  comes_home(h);
  h.ask(k_doubted);
  h.switch_to(0, k_doubted, k_digest_b);
  CHECK(h.count<Launch>() == 1);
  h.end_job();
  h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  h.end_job();
  for (int i = 0; i < 2; ++i) {  // the first and the second again
    fails(h);
    CHECK(h.last<Fail>().fault == wire::Fault::doubt);
    comes_home(h);
    h.pass(600s);
  }
}

TEST_CASE("doubts: a node whose DNS does not know a host lets other nodes try first") {
  Harness h;
  fails(h, k_doubted, "dial tcp: lookup reg.example: no such host");
  CHECK(h.last<Fail>().fault == wire::Fault::doubt);
}

TEST_CASE("doubts: a registry that does not answer fails nobody for good, however often") {
  Harness h;
  for (int i = 0; i < 6; ++i) {
    fails(h, k_doubted, "dial tcp 10.0.0.1:443: connect: connection refused");
    CHECK(h.last<Fail>().fault == wire::Fault::infrastructure);
    comes_home(h);
    h.pass(600s);
  }
  CHECK(h.count<GiveUp>() == 0);
}

TEST_CASE("doubts: the kubelet's own limit on pulls is nobody's fault, and is waited for") {
  Harness h;
  const ClientId client = h.ask(k_doubted);
  h.patched();
  h.goodbye();
  h.waits(0, "ErrImagePull", "pull QPS exceeded");
  h.pass(300s);
  CHECK(h.count<Fail>() == 0);
  h.hello();
  h.runs(0, k_doubted, "reg.example/bad@" + k_digest_a);
  CHECK(h.last<Launch>().client == client);
}

TEST_CASE("doubts: where the node starts others and says nothing of an image, the pilot is not at fault") {
  for (const bool another : {true, false}) {
    Harness h(2);
    const ClientId silent = h.ask(k_doubted, wire::Verb::test);
    h.patched();
    h.goodbye(0);
    h.pass(60s);
    if (another) {
      h.ask(k_image_a, wire::Verb::exec, "bob", 20002);
      h.switch_to(1, k_image_a, k_digest_a);
    }
    h.pass(540s);
    CHECK(h.last<Fail>().client == silent);
    CHECK(h.last<Fail>().message ==
          "no payload container had the image within 600 seconds: the node does not say why");
    CHECK(h.last<Fail>().fault == wire::Fault::infrastructure);
    CHECK(h.core.snapshot().doubts.size() == (another ? 1 : 0));
    CHECK(h.core.snapshot().failures == (another ? 0 : 1));
  }
}

TEST_CASE("doubts: a node that worked before it was asked for an image may have stopped since") {
  Harness h;
  h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  h.end_job();
  h.ask(k_doubted, wire::Verb::test);
  h.patched();
  h.goodbye();
  h.pass(600s);
  CHECK(h.last<Fail>().message ==
        "no payload container had the image within 600 seconds: the node does not say why");
  CHECK(h.core.snapshot().doubts.empty());
  CHECK(h.core.snapshot().failures == 1);
}

TEST_CASE("doubts: unknown words are not waited for as long as those that are known to pass") {
  Harness h;
  h.ask(k_doubted);
  h.patched();
  h.goodbye();
  h.waits(0, "ErrImagePull", k_words);
  h.pass(29s);
  CHECK(h.count<Fail>() == 0);
  h.pass(1s);
  CHECK(h.count<Fail>() == 1);
}

TEST_CASE("doubts: a job that is launched without a test is given back, not held") {
  Harness h;
  fails(h, k_doubted, k_words, wire::Verb::exec);
  CHECK(h.last<Fail>().of_job);
  CHECK(h.last<Fail>().fault == wire::Fault::infrastructure);
}

TEST_CASE("doubts: an image that no puller could get touches no container, and is in doubt at once") {
  Policy policy;
  policy.pullers = true;
  Harness h(1, policy);
  h.ask(k_doubted, wire::Verb::test);
  const auto wanted = kube::read_wanted(h.last<Want>().text);
  h.core.on_wanted({}, h.now);
  h.pod.pulled_images = {{wanted.at(0), kube::PulledImage::State::failed, "ErrImagePull", k_words}};
  h.tell();
  h.pass(30s);
  CHECK(h.last<Fail>().fault == wire::Fault::doubt);
  CHECK(h.count<Patch>() == 0);
  CHECK(h.core.snapshot().failures == 0);
  h.ask(k_doubted, wire::Verb::test);
  CHECK(h.last<Fail>().message.find("this pilot tries the image again in") != std::string::npos);
}

TEST_CASE("doubts: an image that runs while its glue stays silent is in doubt, and the pilot is not") {
  Harness h;
  for (int i = 0; i < 6; ++i) {
    h.ask(k_doubted, wire::Verb::test);
    h.patched();
    h.goodbye();
    h.runs(0, k_doubted, "reg.example/bad@" + k_digest_a);
    const int fails = h.count<Fail>();
    h.pass(29s);
    CHECK(h.count<Fail>() == fails);
    h.pass(1s);
    CHECK(h.count<Fail>() == fails + 1);
    CHECK(h.last<Fail>().fault == (i < 2 ? wire::Fault::doubt : wire::Fault::user));
    CHECK(
        h.last<Fail>().message.starts_with("a container of this image runs, but glue in it does not answer"));
    CHECK(h.last<Patch>().image.ends_with("@" + k_digest_home));
    CHECK(h.core.snapshot().failures == 0);
    h.goodbye();
    comes_home(h);
    h.pass(600s);
  }
  CHECK(h.count<GiveUp>() == 0);
}

TEST_CASE("doubts: a silent glue of the pilot's own image is the pilot's fault") {
  Harness h;
  h.ask(k_doubted, wire::Verb::test);
  h.patched();
  h.goodbye();
  h.runs(0, k_doubted, "reg.example/bad@" + k_digest_a);
  h.pass(90s);
  h.patched();
  h.over[0] = true;
  h.runs_home(0);
  h.pass(600s);
  CHECK(h.core.snapshot().failures == 1);
}

TEST_CASE("doubts: a glue that is heard late is waited for") {
  Harness h;
  const ClientId client = h.ask(k_doubted);
  h.patched();
  h.goodbye();
  h.runs(0, k_doubted, "reg.example/bad@" + k_digest_a);
  h.pass(29s);
  h.hello();
  h.pass(29s);
  CHECK(h.count<Fail>() == 0);
  CHECK(h.last<Launch>().client == client);
}

TEST_CASE("doubts: a status that still shows what ran before is not a glue that is silent") {
  Harness h;
  h.ask(k_doubted);
  h.switch_to(0, k_doubted, k_digest_b);
  h.end_job();
  h.ask(k_doubted, wire::Verb::test, "bob", 20002);
  h.patched();
  h.goodbye();
  h.tell();
  h.pass(120s);
  CHECK(h.count<Fail>() == 0);
}

TEST_CASE("doubts: jobs that fail together count as one try, and make the pause no longer") {
  Harness h(2);
  for (int i = 0; i < 2; ++i) {
    h.ask(k_doubted, wire::Verb::test, "bob", static_cast<uid_t>(20001 + i));
    h.patched();
    h.goodbye(i);
  }
  for (int i = 0; i < 2; ++i) h.waits(i, "ErrImagePull", k_words);
  h.pass(30s);
  CHECK(h.count<Fail>() == 2);
  h.pass(59s);
  h.ask(k_doubted, wire::Verb::test);
  CHECK(h.last<Fail>().message.find("this pilot tries the image again in 1 seconds; failures so far: 1,") ==
        0);
  h.pass(1s);
  const int patches = h.count<Patch>();
  h.patched_attempt(3);
  h.hello(0);
  h.runs_home(0);
  h.ask(k_doubted, wire::Verb::test);
  CHECK(h.count<Patch>() == patches + 1);
}

namespace {
// The container has failed before and is just at home, where the kubelet may yet act on what it was told
// earlier: words that name no image may be of that one.
ClientId asks_after_a_failure(Harness& h) {
  fails(h, k_doubted, "manifest unknown");
  h.patched();
  h.hello();
  h.runs_home(0);
  const ClientId client = h.ask(k_image_a, wire::Verb::test);
  CHECK(h.last<Patch>().image == k_image_a);
  h.patched();
  h.goodbye();
  h.waits(0, "ErrImagePull", "unsupported image-specific operation on artifact");
  h.pass(9s);
  CHECK(h.last<Fail>().client != client);
  return client;
}
}  // namespace

TEST_CASE("doubts: words that blame an image without its name wait for it") {
  Harness h;
  const ClientId client = asks_after_a_failure(h);
  h.waits(0, "ImagePullBackOff",
          "Back-off pulling image \"" + k_image_a +
              "\": ErrImagePull: unsupported image-specific operation on artifact");
  CHECK(h.last<Fail>().client == client);
  CHECK(h.last<Fail>().fault == wire::Fault::user);
}

TEST_CASE("doubts: words that blame an image are waited for with its name from when they were first said") {
  Harness h;
  fails(h, k_doubted, "manifest unknown");
  h.patched();
  h.hello();
  h.runs_home(0);
  const ClientId client = h.ask(k_image_a, wire::Verb::test);
  h.patched();
  h.goodbye();
  h.waits(0, "ErrImagePull", "dial tcp: i/o timeout");
  h.pass(60s);
  h.waits(0, "ErrImagePull", "unsupported image-specific operation on artifact");
  h.pass(9s);
  CHECK(h.last<Fail>().client != client);
  h.pass(1s);
  CHECK(h.last<Fail>().client == client);
}

TEST_CASE("doubts: words of a start are those of the image that the status tells with it") {
  Harness h;
  const ClientId client = asks_after_a_failure(h);
  kube::ContainerStatus& status = h.status(0);
  status.reason = "CrashLoopBackOff";
  status.message = "back-off 10s restarting failed container";
  status.last_terminated =
      kube::Termination{"StartError", "/glidepod: not a directory", 128, 0, "containerd://7"};
  SUBCASE("and no other's") {
    h.tell();
    CHECK(h.last<Fail>().client != client);
  }
  SUBCASE("its own") {
    status.image = k_image_a;
    status.image_id = "reg.example/a@" + k_digest_a;
    h.tell();
    CHECK(h.last<Fail>().client == client);
    CHECK(h.last<Fail>().fault == wire::Fault::user);
  }
}

TEST_CASE("doubts: words that blame an image, and are never told with its name, hold no slot for long") {
  Harness h;
  const ClientId client = asks_after_a_failure(h);
  h.tell();  // once more
  h.waits(0, "ImagePullBackOff", "Back-off pulling image");
  h.pass(1s);
  CHECK(h.last<Fail>().client == client);
  CHECK(h.last<Fail>().fault == wire::Fault::doubt);
  CHECK(h.last<Patch>().image.ends_with("@" + k_digest_home));
  CHECK(h.core.snapshot().failures == 0);
  REQUIRE(h.core.snapshot().doubts.size() == 1);
  CHECK(h.core.snapshot().doubts[0].named == "docker://" + k_image_a);
}

TEST_CASE("doubts: what is kept of images in doubt is bounded") {
  Doubts doubts;
  const Time start{1000s};
  const auto name = [](int i) { return fmt::format("reg.example/x:{}", i); };
  for (int i = 0; i < 256; ++i) doubts.add(Image(name(i)), "docker://x", "no", true, start);
  CHECK(doubts.all().size() == 256);
  CHECK(doubts.waits(Image(name(0)), start) != nullptr);
  doubts.add(Image(name(256)), "docker://x", "no", true, start);
  CHECK(doubts.all().size() == 256);
  CHECK(doubts.waits(Image(name(0)), start) == nullptr);
  CHECK(doubts.waits(Image(name(1)), start) != nullptr);
  for (int i = 0; i < 9; ++i) doubts.add(Image(name(1)), fmt::format("docker://{}", i), "no", true, start);
  CHECK(doubts.waits(Image(name(1)), start)->names.size() == 4);
}

TEST_CASE("doubts: failures a minute apart count each, and two hours after the last pause none does") {
  Doubts doubts;
  const Time start{};  // the clock's own beginning is a time as any other
  CHECK(doubts.add(Image(k_doubted), {}, "no", true, start).failures == 1);
  CHECK(doubts.add(Image(k_doubted), {}, "no", true, start + 59s).failures == 1);
  CHECK(doubts.add(Image(k_doubted), {}, "no", true, start + 60s).failures == 2);
  CHECK(doubts.waits(Image(k_doubted), start + 179s) != nullptr);
  CHECK(doubts.waits(Image(k_doubted), start + 180s) == nullptr);
  SUBCASE("just before") {
    CHECK(doubts.add(Image(k_doubted), {}, "no", true, start + 180s + 2h - 1s).failures == 3);
  }
  SUBCASE("then") {
    CHECK(doubts.add(Image(k_doubted), {}, "no", true, start + 180s + 2h).failures == 1);
  }
}
