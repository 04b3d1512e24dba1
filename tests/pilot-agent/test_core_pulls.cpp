// Images that are pulled beside the pod: jobs wait for them without a container.
#include "tests/pilot-agent/core_harness.hpp"

using namespace glidepod;
using namespace glidepod::agent;
using kube::PulledImage;
using kube::WantedImage;
using State = agent::State;
using Told = PulledImage::State;

namespace {
Policy beside() {
  Policy policy;
  policy.pullers = true;
  return policy;
}

struct BesidePod : Harness {
  explicit BesidePod(
      int count = 1, const Policy& policy = beside(),
      const std::function<void(kube::Pod&)>& more = [](kube::Pod&) {})
      : Harness(count, policy, 0, Core::Earlier::none, more) {}
  std::vector<WantedImage> wanted() const { return kube::read_wanted(last<Want>().text); }
  std::vector<std::string> images() const {
    std::vector<std::string> result;
    for (const WantedImage& one : wanted()) result.push_back(one.image);
    return result;
  }
  // The newest question is taken, and answered so.
  void taken() {
    core.on_wanted({}, now);
    take();
  }
  void told(Told state, const std::string& reason = {}, const std::string& message = {}) {
    told({wanted().back(), state, reason, message});
  }
  void told(const PulledImage& answer) {
    pod.pulled_images = {answer};
    tell();
  }
  void failing(const std::string& message) { told(Told::failed, "ErrImagePull", message); }
};
}  // namespace

TEST_CASE("pulls: an image that is not known to be there is asked for, and switched to when it is") {
  BesidePod h;
  const ClientId client = h.ask(k_image_a);
  CHECK(h.images() == std::vector{k_image_a});
  CHECK(h.count<Patch>() == 0);
  CHECK(h.state() == State::idle);
  CHECK(h.core.watching());
  h.taken();
  h.told(Told::pulling);
  h.pass(100s);
  CHECK(h.count<Patch>() == 0);
  h.told(Told::ready);
  CHECK(h.last<Patch>().image == k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  CHECK(h.last<Launch>().client == client);
  CHECK(h.noted("how=pulled"));
  CHECK(h.core.snapshot().containers[0].how == "pulled");
  CHECK(h.count<Want>() == 1);
  h.end_job();
  // Known from now on: nobody is asked.
  h.ask(k_image_a, wire::Verb::exec, "bob");
  CHECK(h.count<Want>() == 1);
  CHECK(h.count<Patch>() == 2);
}

TEST_CASE(
    "pulls: nobody is asked where there are no pullers, nor for the pilot's own image, nor by a probe") {
  BesidePod off(1, Policy{});
  off.ask(k_image_a);
  CHECK(off.count<Want>() == 0);
  CHECK(off.count<Patch>() == 1);
  BesidePod h(2);
  h.ask("reg.example/pilot:1");
  h.ask("");
  CHECK(h.count<Want>() == 0);
  CHECK(h.count<Launch>() == 2);
}

TEST_CASE("pulls: an image that does not exist costs its job, with the registry's words, and no container") {
  BesidePod h;
  h.ask(k_image_a);
  h.ask(k_image_a, wire::Verb::test);
  h.taken();
  h.failing("rpc error: manifest unknown");
  CHECK(h.count<Fail>() == 2);
  CHECK(h.last<Fail>().fault == wire::Fault::user);
  CHECK(h.last<Fail>().message == "rpc error: manifest unknown");
  CHECK(h.count<Patch>() == 0);
  CHECK(h.state() == State::idle);
  CHECK(h.images().empty());  // taken back, so that its puller goes
  CHECK_FALSE(h.core.watching());
  // Whoever asks again may find it pushed meanwhile.
  h.taken();
  h.ask(k_image_a);
  CHECK(h.images() == std::vector{k_image_a});
  h.tell();  // the old answer still stands there
  CHECK(h.count<Fail>() == 2);
}

TEST_CASE("pulls: trouble that may pass is waited for, and then judged as a container's own") {
  BesidePod h;
  h.ask(k_image_a);
  h.taken();
  h.failing("dial tcp: i/o timeout");
  h.pass(119s);
  CHECK(h.count<Fail>() == 0);
  h.failing("dial tcp: connection refused");
  h.pass(1s);
  CHECK(h.last<Fail>().fault == wire::Fault::infrastructure);
  CHECK(h.last<Fail>().message == "dial tcp: connection refused");
  CHECK(h.count<Patch>() == 0);
  CHECK(h.core.snapshot().failures == 0);  // no container was touched

  BesidePod passes;
  passes.ask(k_image_a);
  passes.taken();
  passes.failing("dial tcp: i/o timeout");
  passes.pass(60s);
  passes.told(Told::ready);
  CHECK(passes.count<Patch>() == 1);
}

TEST_CASE("pulls: without an answer a container pulls, and for a while nobody is asked again") {
  BesidePod h(2);
  h.ask(k_image_a);
  h.pass(19s);
  CHECK(h.count<Patch>() == 0);
  h.pass(1s);
  CHECK(h.last<Patch>().image == k_image_a);
  h.ask(k_image_b);
  CHECK(h.last<Patch>().image == k_image_b);
  CHECK(h.count<Want>() == 1);
  CHECK_FALSE(h.noted("unexpected"));
}

TEST_CASE("pulls: help that is refused or lost is not waited for") {
  BesidePod lost;
  lost.ask(k_image_a);
  lost.taken();
  lost.told(Told::pulling);
  lost.told(Told::lost, "Evicted");
  CHECK(lost.count<Patch>() == 1);
  CHECK(lost.noted("by=lost state=silent reason=Evicted"));
  lost.switch_to(0, k_image_a, k_digest_a);
  CHECK(lost.noted("how=switched"));

  BesidePod refused;
  refused.ask(k_image_a);
  kube::Failure failure;
  failure.kind = kube::Failure::Kind::status;
  failure.status = 403;
  refused.core.on_wanted(failure.to_error(), refused.now);
  refused.take();
  CHECK(refused.count<Patch>() == 1);
  CHECK(refused.count<Want>() == 1);  // and not again at once
}

TEST_CASE("pulls: one that takes too long ends its request, and costs neither neighbours nor the pilot") {
  BesidePod h;
  for (int i = 0; i < 6; ++i) {
    h.ask(k_image_a);
    h.pass(1s);
    h.taken();
    h.told(Told::pulling);
    h.tell();  // once more
    h.pass(568s);
    CHECK(h.count<Fail>() == i);
    h.pass(2s);
    CHECK(h.count<Fail>() == i + 1);
    CHECK(h.last<Fail>().fault == wire::Fault::infrastructure);
    CHECK(h.last<Fail>().message.find("has not pulled it within 570 seconds") != std::string::npos);
    h.pass(3600s);  // it was in doubt
  }
  CHECK(h.count<Patch>() == 0);
  CHECK(h.count<GiveUp>() == 0);
}

TEST_CASE("pulls: an answer to another question, or of another image, is none") {
  BesidePod h;
  h.ask(k_image_a);
  h.taken();
  const WantedImage own = h.wanted().back();
  h.told({{k_image_b, own.ask}, Told::failed, "ErrImagePull", "manifest unknown"});
  h.told({{own.image, "other-p1"}, Told::failed, "ErrImagePull", "manifest unknown"});
  h.told({{own.image, "other-p1"}, Told::ready, "", ""});
  CHECK(h.count<Fail>() == 0);
  CHECK(h.count<Patch>() == 0);
}

TEST_CASE("pulls: what nobody waits for any more is taken back") {
  BesidePod h;
  const ClientId client = h.ask(k_image_a);
  h.taken();
  h.told(Told::pulling);
  h.core.on_client_gone(client, h.now);
  h.take();
  CHECK(h.images().empty());
  CHECK_FALSE(h.core.watching());
}

TEST_CASE("pulls: a neighbour's switch does not wait") {
  BesidePod h(1);
  h.ask(k_image_b);
  h.taken();
  h.told(Told::ready);
  h.switch_to(0, k_image_b, k_digest_b);
  h.end_job();
  h.ask(k_image_a);
  h.ask(k_image_b, wire::Verb::exec, "bob");
  CHECK(h.count<Patch>() == 2);
  CHECK(h.last<Patch>().image.ends_with("@" + k_digest_b));
}

TEST_CASE("pulls: an error says that an image is not there any more") {
  BesidePod h;
  h.ask(k_image_a);
  h.taken();
  h.told(Told::ready);
  h.patched();
  h.goodbye();
  h.waits(0, "ErrImagePull", "manifest unknown");
  CHECK(h.count<Fail>() == 1);
  h.ask(k_image_a);
  CHECK(h.count<Want>() == 2);
}

TEST_CASE("pulls: a content is asked for without the tag beside it") {
  BesidePod h;
  h.ask("docker.io/library/a:1@" + k_digest_a);
  CHECK(h.images() == std::vector{"docker.io/library/a@" + k_digest_a});
}

TEST_CASE("pulls: one question at a time is written, and no more than so many images") {
  BesidePod h;
  h.ask(k_image_a);
  h.ask(k_image_b);
  CHECK(h.count<Want>() == 1);
  h.taken();
  CHECK(h.count<Want>() == 2);
  CHECK(h.images() == std::vector{k_image_a, k_image_b});
  h.taken();
  for (int i = 0; i < 20; ++i) {
    h.ask("docker.io/library/many:" + std::to_string(i));
    h.taken();
  }
  CHECK(h.wanted().size() == kube::k_most_wanted);
  CHECK(h.core.snapshot().pulls.size() == kube::k_most_wanted);
  CHECK(h.count<Patch>() == 1);  // of those beyond, the first has the only container
}

TEST_CASE("pulls: what an earlier agent wanted is taken back") {
  Core core(beside());
  kube::Pod pod;
  pod.containers.push_back({"pilot", "reg.example/pilot:1", {}});
  pod.wanted_images = {{k_image_a, "g1-p1"}};
  core.on_first_pod(pod, Core::Earlier::some, Time{1000s});
  std::string text;
  for (const Action& action : core.take_actions())
    if (const auto* want = std::get_if<Want>(&action)) text = want->text;
  CHECK(text == "[]");
}

TEST_CASE("pulls: a request whose time is over says what its image had") {
  Policy policy = beside();
  policy.pull_patience = 700s;
  BesidePod h(1, policy);
  h.ask(k_image_a);
  h.taken();
  h.failing("dial tcp: i/o timeout");
  const Snapshot snapshot = h.core.snapshot();
  CHECK(snapshot.to_string().find("state=failing") != std::string::npos);
  REQUIRE(snapshot.pulls.size() == 1);
  CHECK(snapshot.pulls[0].image == k_image_a);
  CHECK(snapshot.pulls[0].trouble == "dial tcp: i/o timeout");
  REQUIRE(snapshot.waiting.size() == 1);
  CHECK(snapshot.waiting[0].pulling);
  CHECK(snapshot.waiting[0].trouble == "dial tcp: i/o timeout");
  h.pass(600s);
  CHECK(h.last<Fail>().message ==
        "no payload container had the image within 600 seconds: dial tcp: i/o timeout");
}

TEST_CASE("pulls: a pilot that is to end takes its questions back") {
  BesidePod h;
  h.ask(k_image_a);
  h.taken();
  CHECK(h.noted("event=pull image=" + k_image_a + " by=wanted state=asked"));
  h.core.drain(h.now);
  h.take();
  CHECK(h.images().empty());
}

TEST_CASE("pulls: the kubelet's own limit on pulls, and what is no trouble, are waited for as a pull") {
  for (const auto& said :
       {std::pair{"ErrImagePull", "pull QPS exceeded"}, std::pair{"ContainerCreating", ""}}) {
    CAPTURE(said.first);
    BesidePod h;
    h.ask(k_image_a);
    h.taken();
    h.told(Told::failed, said.first, said.second);
    CHECK(h.core.snapshot().to_string().find("state=pulling") != std::string::npos);
    h.pass(200s);
    CHECK(h.count<Fail>() == 0);
    h.told(Told::ready);
    CHECK(h.count<Patch>() == 1);
  }
}

TEST_CASE("pulls: while the kubelet waits before its next try, the words of the last one count") {
  BesidePod h;
  h.ask(k_image_a);
  h.taken();
  h.failing("something that nobody has seen yet");
  h.told(Told::failed, "ImagePullBackOff", "Back-off pulling image");
  h.pass(30s);
  CHECK(h.last<Fail>().message == "something that nobody has seen yet");
  CHECK(h.last<Fail>().fault == wire::Fault::infrastructure);
  CHECK(h.count<Patch>() == 0);

  BesidePod pause;  // where nothing else was told before, it is all that is known
  pause.ask(k_image_a);
  pause.taken();
  pause.told(Told::failed, "ImagePullBackOff", "Back-off pulling image");
  CHECK(pause.core.snapshot().to_string().find("state=failing") != std::string::npos);
}

namespace {
void refuse(BesidePod& h, int status) {
  kube::Failure failure;
  failure.kind = status == 0 ? kube::Failure::Kind::transport : kube::Failure::Kind::status;
  failure.status = status;
  failure.message = "no";
  h.core.on_wanted(failure.to_error(), h.now);
  h.take();
}
}  // namespace

TEST_CASE("pulls: after a refusal the annotation says what it said before, and is not written again") {
  BesidePod h(2);
  h.ask(k_image_b);
  h.taken();
  h.told(Told::pulling);
  h.ask(k_image_a);
  CHECK(h.count<Want>() == 2);
  refuse(h, 403);
  CHECK(h.noted("event=pull image=" + k_image_a + " by=refused state=silent reason=\"403: no\""));
  h.pass(61s);
  h.tell();
  CHECK(h.count<Want>() == 2);
}

TEST_CASE("pulls: where nobody has answered, either text may stand there, and it is written again") {
  BesidePod h;
  const ClientId client = h.ask(k_image_a);
  h.taken();
  h.told(Told::pulling);
  h.core.on_client_gone(client, h.now);  // it is taken back
  h.take();
  CHECK(h.count<Want>() == 2);
  refuse(h, 0);
  h.now += 59s;
  h.tell();
  CHECK(h.count<Want>() == 2);
  h.now += 1s;
  h.tell();
  CHECK(h.count<Want>() == 3);
  CHECK(h.images().empty());
}

TEST_CASE("pulls: who waits for a container, not for an image, is not said to wait for a pull") {
  BesidePod h;
  h.ask(k_image_a);
  h.pass(20s);  // nobody has answered: the only container pulls
  h.ask(k_image_a, wire::Verb::exec, "bob", 20002);
  h.ask("");
  const Snapshot snapshot = h.core.snapshot();
  REQUIRE(snapshot.waiting.size() == 2);
  for (const auto& waiting : snapshot.waiting) CHECK_FALSE(waiting.pulling);
}

TEST_CASE("pulls: a pull that has failed just when its request's time is over is what that is told") {
  Policy policy = beside();
  policy.pull_patience = policy.bind_deadline;
  BesidePod h(1, policy);
  h.ask(k_image_a);
  h.taken();
  h.failing("dial tcp: i/o timeout");
  h.pass(policy.bind_deadline);
  CHECK(h.count<Fail>() == 1);
  CHECK(h.last<Fail>().message == "dial tcp: i/o timeout");
}

TEST_CASE("pulls: with credentials a bare refusal is not the image's fault") {
  for (const bool credentials : {false, true}) {
    BesidePod h(1, beside(), [&](kube::Pod& pod) { pod.pull_secrets = credentials; });
    h.ask(k_image_a);
    h.taken();
    h.failing("unexpected status: 401 Unauthorized");
    CHECK(h.count<Fail>() == (credentials ? 0 : 1));
  }
}

TEST_CASE("pulls: for a minute after silence nobody is asked, and then again") {
  BesidePod h(3);
  h.ask(k_image_a);
  h.taken();
  h.pass(20s);
  h.now += 59s;
  h.ask(k_image_b, wire::Verb::exec, "bob", 20002);
  CHECK(h.count<Want>() == 1);
  h.now += 1s;
  h.ask("docker.io/library/c:1", wire::Verb::exec, "carol", 20003);
  CHECK(h.count<Want>() == 2);
  CHECK(h.images() == std::vector<std::string>{"docker.io/library/c:1"});
}

TEST_CASE("pulls: who is at it is believed, whatever is said beside") {
  BesidePod h;
  h.ask(k_image_a);
  h.taken();
  h.told(Told::pulling, "ErrImagePull", "manifest unknown");
  CHECK(h.count<Fail>() == 0);
}

TEST_CASE("pulls: what becomes of each is told to whoever observes, and silence as a warning") {
  Policy policy = beside();
  policy.pull_patience = 60s;
  BesidePod h(1, policy);
  std::vector<std::string> seen;
  h.core.observe_pulls([&seen](const std::string& image, const PullTransition& transition) {
    CHECK(image == k_image_a);
    CHECK(std::ranges::find(pull_transitions(), transition) != pull_transitions().end());
    seen.push_back(fmt::format("{} {}", name_of(transition.event), name_of(transition.to)));
  });
  h.ask(k_image_a);
  h.taken();
  h.failing("dial tcp: i/o timeout");
  h.failing("dial tcp: connection refused");
  h.pass(60s);
  CHECK(seen == std::vector<std::string>{"wanted asked", "trouble failing", "time none"});
  h.pass(600s);
  seen.clear();
  h.ask(k_image_a);
  h.pass(20s);
  CHECK(seen == std::vector<std::string>{"wanted asked", "time silent", "unwanted none"});
  for (const Action& action : h.all)
    if (const auto* note = std::get_if<Note>(&action);
        note != nullptr && note->text.starts_with("event=pull "))
      CHECK((note->level == Note::Level::warning) == note->text.ends_with("by=time state=silent reason=-"));
}

TEST_CASE("pulls: the one that is due first is looked at in time") {
  BesidePod h(2);
  const Time begun = h.now;
  h.ask(k_image_b);
  h.now += 5s;
  h.ask(k_image_a, wire::Verb::exec, "bob", 20002);
  CHECK(h.core.next_deadline() == begun + 20s);
}

TEST_CASE("pulls: what a container was seen to run is there, whoever has pulled it") {
  BesidePod h;
  h.ask(k_image_a);
  h.pass(20s);
  h.switch_to(0, k_image_a, k_digest_a);
  h.end_job();
  h.now += 60s;
  h.ask(k_image_a, wire::Verb::exec, "bob", 20002);
  CHECK(h.count<Want>() == 1);
  CHECK(h.count<Patch>() == 2);
}
