// The switches by themselves; test_core_switch*.cpp, test_core_proof.cpp and test_core_home.cpp have what the
// core makes of them.
#include <doctest/doctest.h>

#include <string>

#include "lib/kube/image_reference.hpp"
#include "pilot-agent/core/switches.hpp"

using namespace glidepod;
using namespace glidepod::agent;
using namespace std::chrono_literals;

namespace {

using SwitchKind = Switches::Outcome::Kind;
using ShownState = kube::ContainerStatus::State;

const std::string k_pilot_image = "reg.example/pilot:1";
const std::string k_pilot_id = "reg.example/pilot@sha256:" + std::string(64, '0');
const std::string k_wanted_name = "reg.example/wanted:1";
const Image k_wanted{k_wanted_name};
const std::string k_wanted_id = "reg.example/wanted@sha256:" + std::string(64, 'a');

// One container at home, whose glue is connected and which is to get another image.
struct OneSwitch {
  OneSwitch() {
    references.set_home(k_pilot_image);
    kube::ContainerStatus own;
    own.image_id = k_pilot_id;
    references.see_home(own);
    container.name = "payload-0";
    container.told = {Image::home(), k_pilot_image, k_pilot_image};
    container.glue = 1;
    container.instance = container.last_instance = "one";
    Switching step;
    step.asked = k_wanted;
    step.deadline = now + 600s;
    step.before = container.glue;
    container.state = step;
  }
  Switching& step() { return std::get<Switching>(container.state); }
  Patch next_step() {
    switches.next_step(container, now);
    for (const Action& action : actions.take())
      if (const auto* patch = std::get_if<Patch>(&action)) return *patch;
    FAIL("no patch");
    return {};
  }
  Switches::Outcome taken() {
    kube::Pod pod;
    pod.containers = {{"payload-0", step().reference, {}}};
    return switches.patched(container, pod, now);
  }
  void goodbye(EventKind event = EventKind::goodbye) {
    container.glue = 0;
    container.instance.clear();
    CHECK(switches.glue_gone(container, event, now).kind == SwitchKind::under_way);
  }
  Switches::Outcome hello(const std::string& instance = "two") {
    container.glue = 2;
    container.instance = container.last_instance = instance;
    return switches.hello(container, now);
  }
  Switches::Outcome shows(ShownState state, const std::string& image, const std::string& id,
                          const std::string& instance) {
    container.status.emplace();
    container.status->state = state;
    container.status->image = image;
    container.status->image_id = id;
    container.status->container_id = "test://" + instance;
    return switches.judge(container, now);
  }
  Switches::Outcome waits(const std::string& reason, const std::string& message) {
    container.status.emplace();
    container.status->state = ShownState::waiting;
    container.status->reason = reason;
    container.status->message = message;
    return switches.judge(container, now);
  }

  Policy policy;
  Actions actions;
  References references{"n"};
  Pulls pulls{policy};
  Health health{5};
  Switches switches{policy, references, pulls, health, actions};
  Container container;
  Time now{1000s};
};

}  // namespace

TEST_CASE("switches: a goodbye after the patch proves the next Hello, and no other does") {
  OneSwitch one;
  const Patch patch = one.next_step();
  CHECK(patch.image == k_wanted_name);
  CHECK(patch.attempt == one.step().attempt);
  CHECK(one.step().leg == Switching::Leg::target);
  CHECK(one.step().proof == Switching::Proof::goodbye);
  SUBCASE("the API has taken it before") {
    CHECK(one.taken().kind == SwitchKind::under_way);
    one.goodbye();
    CHECK(one.hello().kind == SwitchKind::done);
    CHECK(one.switches.arrived(one.container, one.now));
    CHECK(one.container.proven == k_wanted);
    CHECK(one.container.learning_until == one.now + 3 * one.policy.status_patience);
    CHECK(one.health.proven());
  }
  SUBCASE("the API has yet to take it") {
    one.goodbye();
    CHECK(one.hello().kind == SwitchKind::under_way);
    CHECK(one.step().proof == Switching::Proof::status);
    CHECK_FALSE(one.container.settled());
  }
  SUBCASE("the glue went without one") {
    CHECK(one.taken().kind == SwitchKind::under_way);
    one.goodbye(EventKind::lost);
    CHECK(one.hello().kind == SwitchKind::under_way);
  }
}

TEST_CASE("switches: by its status a container is proven that came after the patch and shows the image") {
  OneSwitch one;
  one.container.unsettle(one.now + 90s);
  one.next_step();
  CHECK(one.step().proof == Switching::Proof::status);
  CHECK(one.shows(ShownState::running, k_wanted_name, k_wanted_id, "two").kind == SwitchKind::under_way);
  CHECK(one.taken().kind == SwitchKind::under_way);
  SUBCASE("another container's status") {
    one.goodbye();
    CHECK(one.hello().kind == SwitchKind::done);
    one.hello("three");
    CHECK(one.switches.judge(one.container, one.now).kind == SwitchKind::under_way);
  }
  SUBCASE("the container of before") {
    one.container.instance = "one";
    CHECK(one.shows(ShownState::running, k_wanted_name, k_wanted_id, "one").kind == SwitchKind::under_way);
    CHECK(one.step().unclear_until == one.now + one.policy.calm);
  }
  SUBCASE("another name, which is not waited for for long") {
    one.goodbye();
    one.hello();
    CHECK(one.shows(ShownState::running, "reg.example/other:1", k_wanted_id, "two").kind ==
          SwitchKind::under_way);
    REQUIRE(one.step().unclear_until == one.now + one.policy.status_patience);
    one.now = *one.step().unclear_until;
    CHECK(one.switches.check(one.container, one.now).kind == SwitchKind::under_way);
    CHECK(one.step().leg == Switching::Leg::home);
    CHECK(one.step().goodbye_needed);
  }
}

TEST_CASE("switches: the way over the pilot's own image has another step, once the kubelet is calm") {
  OneSwitch one;
  one.step().goodbye_needed = true;
  one.container.unsettle(one.now + 90s);
  one.next_step();
  CHECK(one.step().leg == Switching::Leg::home);
  one.taken();
  one.goodbye();
  one.hello();
  REQUIRE(one.shows(ShownState::running, k_pilot_image, k_pilot_id, "two").kind == SwitchKind::done);
  CHECK_FALSE(one.switches.arrived(one.container, one.now));
  CHECK(one.step().leg == Switching::Leg::calm);
  CHECK(Switches::next_deadline(one.container) == one.container.calm_at);
  one.now = *one.container.calm_at;
  CHECK(one.switches.check(one.container, one.now).kind == SwitchKind::under_way);
  CHECK(one.step().leg == Switching::Leg::target);
  CHECK(one.step().proof == Switching::Proof::goodbye);
}

TEST_CASE("switches: the user's fault fails at once, the rest when its time is over") {
  OneSwitch one;
  one.next_step();
  one.taken();
  one.goodbye();
  SUBCASE("no such image") {
    const auto outcome = one.waits("ErrImagePull", "manifest unknown");
    CHECK(outcome.kind == SwitchKind::failed);
    CHECK(outcome.fault == wire::Fault::user);
    CHECK(outcome.message == "manifest unknown");
    CHECK(outcome.next == State::broken);
  }
  SUBCASE("words that nobody knows") {
    CHECK(one.waits("ErrImagePull", "odd words").kind == SwitchKind::under_way);
    REQUIRE(one.step().pull_deadline == one.now + 30s);
    CHECK(Switches::next_deadline(one.container) == one.now + 30s);
    CHECK(one.switches.check(one.container, one.now + 29s).kind == SwitchKind::under_way);
    const auto outcome = one.switches.check(one.container, one.now + 30s);
    CHECK(outcome.kind == SwitchKind::failed);
    CHECK(outcome.fault == wire::Fault::infrastructure);
    CHECK(outcome.message == "odd words");
  }
  SUBCASE("nothing is said") {
    CHECK(Switches::next_deadline(one.container) == one.step().deadline);
    const auto outcome = one.switches.check(one.container, one.step().deadline);
    CHECK(outcome.kind == SwitchKind::failed);
    CHECK(outcome.message ==
          "no payload container had the image within 600 seconds: the node does not say why");
  }
}

TEST_CASE("switches: a refused patch leaves the container as it was, and no answer leaves it unknown") {
  OneSwitch one;
  one.next_step();
  kube::Failure failure;
  SUBCASE("a rule") {
    failure.kind = kube::Failure::Kind::status;
    failure.status = 422;
    const auto outcome = one.switches.not_patched(one.container, failure, one.now);
    CHECK(outcome.kind == SwitchKind::failed);
    CHECK(outcome.fault == wire::Fault::user);
    CHECK(outcome.next == State::idle);
  }
  SUBCASE("no answer") {
    failure.kind = kube::Failure::Kind::transport;
    const auto outcome = one.switches.not_patched(one.container, failure, one.now);
    CHECK(outcome.fault == wire::Fault::infrastructure);
    CHECK(outcome.next == State::broken);
  }
}

TEST_CASE("switches: an id that is refused is left, and with the pilot's own all of them") {
  OneSwitch one;
  const auto with_id = [](char digit) {
    kube::ContainerStatus status;
    status.image_id = "sha256:" + std::string(64, digit);
    return status;
  };
  one.references = References("n");
  one.references.set_home(k_pilot_image);
  one.references.see_home(with_id('0'));
  one.references.learn(k_wanted, k_wanted_name, with_id('a'));
  one.references.id_worked();
  bool others_work = true;
  SUBCASE("a job's") {}
  SUBCASE("the pilot's own") {
    one.step().asked = Image::home();
    others_work = false;
  }
  CHECK(kube::is_by_id(one.next_step().image));
  kube::Failure refused;
  refused.kind = kube::Failure::Kind::status;
  refused.status = 403;
  CHECK(one.switches.not_patched(one.container, refused, one.now).kind == SwitchKind::under_way);
  CHECK_FALSE(kube::is_by_id(one.step().reference));
  CHECK(one.references.ids_work() == others_work);
}

TEST_CASE("switches: an id is left for what the node says of it, not of the container before") {
  OneSwitch one;
  kube::ContainerStatus earlier;
  earlier.image_id = "sha256:" + std::string(64, 'a');
  one.references.learn(k_wanted, k_wanted_name, earlier);
  one.references.id_worked();
  REQUIRE(kube::is_by_id(one.next_step().image));
  REQUIRE(one.step().proof == Switching::Proof::goodbye);
  one.taken();
  one.container.shown_running = true;
  bool left = false;
  std::string words = "odd words";
  SUBCASE("the earlier one has not gone") {}
  SUBCASE("it has") {
    one.goodbye();
    left = true;
  }
  SUBCASE("the words name the id") {
    words += " of " + one.container.told.admitted;
    left = true;
  }
  SUBCASE("the earlier one's words would have changed by now") {
    one.now += one.policy.status_patience;
    left = true;
  }
  SUBCASE("and soon will") {
    one.now += one.policy.status_patience - 1ms;
  }
  CHECK(one.waits("ErrImagePull", words).kind == SwitchKind::under_way);
  CHECK(kube::is_by_id(one.step().reference) != left);
}

TEST_CASE("switches: a patch that changes nothing is done, unless somebody has used the container") {
  OneSwitch one;
  one.step().asked = Image::home();
  SwitchKind kind = SwitchKind::done;
  SUBCASE("nobody has") {}
  SUBCASE("a job has") {
    one.container.owner = "alice";
    kind = SwitchKind::stale;
  }
  one.next_step();
  one.container.told.admitted = one.step().reference;
  CHECK(one.taken().kind == kind);
}

TEST_CASE("switches: a pilot that has to prove itself makes one test switch, where nothing else is changed") {
  OneSwitch one;
  Containers containers(one.actions, {"payload-0", "payload-1"});
  for (Container& container : containers) container.state = Idle{};
  CHECK(one.switches.for_test(containers, one.now) == nullptr);
  one.policy.first = Policy::First::prove;
  CHECK_FALSE(one.switches.owes_test());  // the pod is not known
  CHECK(one.switches.for_test(containers, one.now) == nullptr);
  one.switches.begin(Credentials::none);
  CHECK(one.switches.owes_test());
  containers[1].state = Switching{};
  CHECK(one.switches.for_test(containers, one.now) == nullptr);
  containers[1].state = Absent{};
  CHECK(one.switches.for_test(containers, one.now) == &containers[0]);
  CHECK(one.switches.for_test(containers, one.now + 9s) == nullptr);
  CHECK(one.switches.for_test(containers, one.now + 10s) == &containers[0]);
  SUBCASE("home's digest is not known yet") {
    one.references = References("n");
    CHECK(one.switches.for_test(containers, one.now + 20s) == nullptr);
  }
  SUBCASE("a switch has worked") {
    one.health.switched(one.now);
    CHECK_FALSE(one.switches.owes_test());
    CHECK(one.switches.for_test(containers, one.now + 20s) == nullptr);
  }
}

TEST_CASE("switches: what a status says later of a proven image is learnt, or is in doubt") {
  OneSwitch one;
  one.next_step();
  one.taken();
  one.goodbye();
  one.hello();
  REQUIRE(one.switches.arrived(one.container, one.now));
  CHECK(one.switches.look_at(one.container, one.now) == Check::unknown);
  SUBCASE("it is as told") {
    one.shows(ShownState::running, k_wanted_name, k_wanted_id, "two");
    CHECK(one.switches.look_at(one.container, one.now) == Check::as_told);
    CHECK(one.references.knows(k_wanted));
    CHECK(one.switches.look_at(one.container, one.now) == Check::unknown);
  }
  SUBCASE("the pilot's own image runs") {
    one.shows(ShownState::running, k_pilot_image, k_pilot_id, "two");
    CHECK(one.switches.look_at(one.container, one.now) == Check::doubtful);
    CHECK(one.container.spoiled);
    CHECK_FALSE(one.container.settled());
    CHECK(one.references.may_be_home(k_wanted));
  }
  SUBCASE("the next switch has begun by then") {
    one.next_step();
    one.shows(ShownState::running, k_wanted_name, k_wanted_id, "two");
    one.switches.learn_earlier(one.container);
    CHECK(one.references.knows(k_wanted));
    CHECK_FALSE(one.container.unlearnt);
  }
}
