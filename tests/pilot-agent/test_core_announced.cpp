// Jobs that are announced while HTCondor brings their input files.
#include "lib/kube/pulls.hpp"
#include "tests/pilot-agent/core_harness.hpp"

using namespace glidepod;
using namespace glidepod::agent;

namespace {

struct Announcing : Harness {
  using Harness::Harness;
  void announce(const std::string& image, const std::string& job = "1.0", uid_t uid = 20001) {
    core.on_announce({0, wire::Verb::announce, false, Image(image), "alice", job, uid}, now);
    take();
  }
  int patches() const { return count<Patch>(); }
};

Policy with_pullers() {
  Policy policy;
  policy.pullers = true;
  return policy;
}

}  // namespace

TEST_CASE("announced: the job's image comes while its input files do") {
  Announcing h(1);
  h.announce(k_image_a);
  CHECK(h.noted("event=announced container=payload-0 image=" + k_image_a));
  h.switch_to(0, k_image_a, k_digest_a);
  CHECK(h.state() == State::idle);
  const ClientId client = h.ask(k_image_a, wire::Verb::test);
  CHECK(h.last<Answer>().client == client);
  CHECK(h.noted("event=prepared job=1.0 owner=alice image=" + k_image_a +
                " container=payload-0 how=switched bind_ms=0.0"));
  CHECK(h.patches() == 1);
  h.ask(k_image_a);
  CHECK(h.noted("event=bound job=1.0 owner=alice image=" + k_image_a + " container=payload-0 how=switched"));
  h.end_job();
  h.ask(k_image_a);
  CHECK(h.noted("container=payload-0 how=warm"));
}

TEST_CASE("announced: a container that is made anew for another owner is told as fresh") {
  Announcing h(1);
  h.ask(k_image_a, wire::Verb::exec, "bob", 20002);
  h.switch_to(0, k_image_a, k_digest_a);
  h.end_job();
  h.announce(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  h.ask(k_image_a);
  CHECK(h.noted("owner=alice image=" + k_image_a + " container=payload-0 how=fresh bind_ms=0.0"));
}

TEST_CASE("announced: what is brought for one job and taken for another image is told by its own way") {
  Announcing h(1);
  h.announce(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  h.ask(k_image_b);
  h.switch_to(0, k_image_b, k_digest_b);
  h.end_job();
  h.ask(k_image_b);
  CHECK(h.noted("owner=alice image=" + k_image_b + " container=payload-0 how=warm"));
}

TEST_CASE("announced: a job that asks early waits for the switch that is under way") {
  Announcing h(2);
  h.announce(k_image_a);
  const ClientId client = h.ask(k_image_a);
  CHECK(h.patches() == 1);
  h.switch_to(0, k_image_a, k_digest_a);
  CHECK(h.last<Launch>().client == client);
}

TEST_CASE("announced: each job gets a container, and one only") {
  Announcing h(3);
  h.announce(k_image_a);
  h.announce(k_image_a);
  CHECK(h.patches() == 1);
  h.announce(k_image_a, "2.0", 20002);
  CHECK(h.patches() == 2);
  h.tell();
  CHECK(h.patches() == 2);
}

TEST_CASE("announced: an image that cannot be had is not tried again for the job, whose fault it is") {
  Announcing h(2);
  h.announce(k_image_a);
  h.announce(k_image_b, "2.0", 20002);
  REQUIRE(h.patches() == 2);
  h.answer(h.last<Patch>([](const Patch& patch) { return patch.container == "payload-0"; }), {});
  h.goodbye(0);
  std::string words = "manifest unknown", asked = k_image_a;
  bool told = true;
  std::chrono::seconds later = 59s;
  SUBCASE("it asks soon") {}
  SUBCASE("it asks when the image may be there") {
    later = 60s;
    told = false;
  }
  SUBCASE("it asks for another") {
    asked = k_image_b;
    told = false;
  }
  SUBCASE("it is not known whose fault it is") {
    words = "odd words";
    told = false;
  }
  h.waits(0, "ErrImagePull", words);
  h.now += later;
  const int fails = h.count<Fail>();
  const ClientId client = h.ask(asked, wire::Verb::test);
  CHECK((h.count<Fail>() > fails) == told);
  if (!told) return;
  CHECK(h.last<Fail>().client == client);
  CHECK(h.last<Fail>().fault == wire::Fault::user);
  CHECK(h.last<Fail>().message.find(words) != std::string::npos);
  CHECK(h.core.snapshot().failures == 0);
  // It is told once. Another job's image has nothing to do with it.
  h.ask(k_image_b, wire::Verb::test, "alice", 20002);
  h.ask(k_image_a, wire::Verb::test);
  CHECK(h.count<Fail>() == fails + 1);
}

TEST_CASE("announced: the next job of a slot is another") {
  Announcing h(2);
  h.announce(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  h.ask(k_image_a);
  CHECK(h.state() == State::running);
  h.announce(k_image_b, "2.0");
  CHECK(h.last<Patch>().container == "payload-1");
  CHECK(h.patches() == 2);
}

TEST_CASE("announced: what another owner's job has used serves nobody else") {
  Announcing h(2);
  h.ask(k_image_a, wire::Verb::exec, "bob", 20002);
  h.switch_to(0, k_image_a, k_digest_a);
  h.end_job();
  h.announce(k_image_a);
  CHECK(h.patches() == 2);
  CHECK(h.last<Patch>().container == "payload-1");
}

TEST_CASE("announced: a job that is here takes what nobody awaits, and else what somebody does") {
  Announcing h(2);
  h.announce(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  h.now += 100s;
  h.ask(k_image_b, wire::Verb::exec, "bob", 20002);
  CHECK(h.last<Patch>().container == "payload-1");
  h.switch_to(1, k_image_b, k_digest_b);
  REQUIRE(h.state(1) == State::running);
  h.ask(k_image_b, wire::Verb::exec, "carol", 20003);
  CHECK(h.last<Patch>().container == "payload-0");
  CHECK(h.patches() == 3);
}

TEST_CASE("announced: what nobody awaits is changed, also where all are spare") {
  Policy policy;
  policy.spares = 2;
  policy.renewal_calm = 0s;
  Announcing h(3, policy);
  h.announce(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  h.announce(k_image_b, "2.0", 20002);
  CHECK(h.last<Patch>().container == "payload-1");
  h.switch_to(1, k_image_b, k_digest_b);
  // The likely image that an owner has run goes where no announced job is waited for.
  h.ask(k_image_a, wire::Verb::exec, "alice", 20001);
  REQUIRE(h.state(0) == State::running);
  CHECK(h.last<Patch>().container == "payload-2");
  CHECK(h.patches() == 3);
}

TEST_CASE("announced: an image that cannot be had is tried once, and the job is told when it binds") {
  Policy policy;
  policy.give_up_after = 1;
  Announcing h(2, policy);
  h.announce(k_image_a);
  h.patch_failed(422, "no");
  CHECK(h.count<GiveUp>() == 0);
  CHECK(h.count<Fail>() == 0);
  h.tell();
  CHECK(h.patches() == 1);
  const ClientId client = h.ask(k_image_a);
  CHECK(h.patches() == 1);
  CHECK(h.last<Fail>().client == client);
  CHECK(h.last<Fail>().fault == wire::Fault::user);
}

TEST_CASE("announced: a job that never asks is forgotten") {
  Announcing h(2);
  h.announce(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  h.pass(599s);
  h.ask("", wire::Verb::exec, "bob", 20002);  // takes the last one that nobody awaits
  h.end_job(1);
  h.pass(1s);
  h.ask(k_image_b, wire::Verb::exec, "carol", 20003);
  CHECK(h.last<Patch>().container == "payload-0");
}

TEST_CASE("announced: no more jobs are remembered than containers could run") {
  Announcing h(2);
  h.announce(k_image_a, "1.0", 20001);
  h.switch_to(0, k_image_a, k_digest_a);
  h.announce(k_image_b, "2.0", 20002);
  h.switch_to(1, k_image_b, k_digest_b);
  h.announce("docker.io/library/c:1", "3.0", 20003);
  CHECK(h.last<Patch>().container == "payload-0");
  CHECK(h.patches() == 3);
}

TEST_CASE("announced: before the pod is known nothing is switched, and then it is") {
  Announcing h(1);
  h.restart();
  h.hello(0);
  h.announce(k_image_a);
  CHECK(h.patches() == 0);
  h.core.on_first_pod(h.pod, Core::Earlier::none, h.now);
  h.take();
  CHECK(h.patches() == 1);
}

TEST_CASE("announced: a job that names the pilot's own image finds it, or nothing is done for it") {
  Announcing h(1);
  h.announce("reg.example/pilot:1");
  CHECK(h.patches() == 0);
  h.ask(k_image_a, wire::Verb::exec, "bob", 20002);
  h.switch_to(0, k_image_a, k_digest_a);
  h.end_job();
  CHECK(h.patches() == 1);
}

TEST_CASE("announced: a pilot that takes no more jobs makes nothing ready") {
  Announcing h(1);
  h.core.withdraw();
  h.announce(k_image_a);
  CHECK(h.patches() == 0);
}

TEST_CASE("announced: the image is pulled beside the pod, and its container switched after") {
  Announcing h(1, with_pullers());
  h.announce(k_image_a);
  CHECK(h.patches() == 0);
  const auto wanted = kube::read_wanted(h.last<Want>().text);
  REQUIRE(wanted.size() == 1);
  CHECK(wanted[0].image == k_image_a);
  h.core.on_wanted({}, h.now);
  h.pod.pulled_images = {{wanted[0], kube::PulledImage::State::ready, {}, {}}};
  h.tell();
  CHECK(h.patches() == 1);
}

TEST_CASE("announced: an image that no puller gets is not asked for again") {
  Announcing h(1, with_pullers());
  h.announce(k_image_a);
  const auto wanted = kube::read_wanted(h.last<Want>().text);
  h.core.on_wanted({}, h.now);
  h.pod.pulled_images = {{wanted[0], kube::PulledImage::State::failed, "ErrImagePull",
                          "manifest for it not found: manifest unknown"}};
  h.tell();
  CHECK(h.count<Want>() == 2);  // it is wanted no more
  CHECK(kube::read_wanted(h.last<Want>().text).empty());
  for (int i = 0; i < 5; ++i) h.pass(30s);
  CHECK(h.patches() == 0);
  CHECK(h.count<Want>() == 2);
}
