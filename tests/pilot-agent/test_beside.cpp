// Requests whose image is pulled beside the pod, by themselves; test_core_pulls.cpp has what the core makes
// of them, and which states a pull has.
#include <doctest/doctest.h>

#include <string>

#include "pilot-agent/core/beside.hpp"
#include "tests/pilot-agent/taken.hpp"

using namespace glidepod;
using namespace glidepod::agent;
using namespace std::chrono_literals;

namespace {

const std::string k_pilots = "reg.example/pilot:1";
const Image k_pulled{"reg.example/pulled:1"};

struct BesideAPod {
  BesideAPod() { references.set_home(k_pilots); }
  // A request waits in the queue.
  ClientId waits(const Image& image, bool probe = false) {
    Request request;
    request.client = ++last;
    request.verb = wire::Verb::test;
    request.any_image = probe;
    request.asked = image;
    queue.add(request, now);
    return last;
  }
  // What became of the newest question.
  void told(kube::PulledImage::State state, const std::string& reason = {}, const std::string& message = {}) {
    const auto& pull = beside.pulls.all().begin()->second;
    beside.pulls.told({{pull.wanted, state, reason, message}}, now);
  }
  template <typename T>
  std::vector<T> done() {
    return taken<T>(actions);
  }

  Policy policy{.pullers = true};
  Actions actions;
  Containers containers{actions, {}};
  Answers answers{actions};
  Health health{5};
  References references{"n"};
  Queue queue{policy, containers, answers};
  Beside beside{policy, references, queue, answers, health, actions};
  ClientId last = 0;
  Time now{1000s};
};

}  // namespace

TEST_CASE("beside: an image is asked for while a request waits for it, and home never") {
  BesideAPod pod;
  CHECK(pod.beside.may_switch(Image::home(), pod.now));
  CHECK_FALSE(pod.beside.may_switch(k_pulled, pod.now));
  pod.waits(k_pulled);
  pod.waits(Image(k_pilots));
  pod.waits(k_pulled, true);
  pod.beside.ask({}, pod.now);
  auto wants = pod.done<Want>();
  REQUIRE(wants.size() == 1);
  CHECK(kube::read_wanted(wants.front().text).size() == 1);
  CHECK(kube::read_wanted(wants.front().text).front().image == k_pulled.name());
  pod.beside.pulls.patched();
  pod.queue.drop(1, EventKind::gone);
  pod.beside.ask({}, pod.now);
  wants = pod.done<Want>();
  REQUIRE(wants.size() == 1);
  CHECK(kube::read_wanted(wants.front().text).empty());
  CHECK(pod.beside.pulls.find(k_pulled) == nullptr);
}

TEST_CASE("beside: an image with a digest that is known is pulled by it") {
  BesideAPod pod;
  kube::ContainerStatus shown;
  shown.image_id = "reg.example/pulled@sha256:" + std::string(64, 'a');
  pod.references.learn(k_pulled, k_pulled.name(), shown);
  CHECK_FALSE(pod.beside.may_switch(k_pulled, pod.now));
  REQUIRE(pod.beside.pulls.find(k_pulled) != nullptr);
  CHECK(pod.beside.pulls.find(k_pulled)->wanted.image == shown.image_id);
}

TEST_CASE("beside: who waits for an image that cannot be pulled fails, and nobody else") {
  BesideAPod pod;
  pod.beside.may_switch(k_pulled, pod.now);
  const ClientId fails = pod.waits(k_pulled);
  pod.waits(Image("reg.example/other:1"));
  pod.waits(k_pulled, true);
  SUBCASE("the user is at fault") {
    pod.told(kube::PulledImage::State::failed, "ErrImagePull", "manifest unknown");
    pod.beside.fail_unpulled(pod.now);
    const auto failed = pod.done<Fail>();
    REQUIRE(failed.size() == 1);
    CHECK(failed.front().client == fails);
    CHECK(failed.front().fault == wire::Fault::user);
    CHECK(pod.health.doubts.all().empty());
  }
  SUBCASE("nobody knows these words") {
    pod.told(kube::PulledImage::State::failed, "ErrImagePull", "odd words");
    pod.beside.fail_unpulled(pod.now);
    CHECK(pod.done<Fail>().empty());
    pod.now += 30s;
    pod.beside.pulls.on_time(pod.now);
    pod.beside.fail_unpulled(pod.now);
    const auto failed = pod.done<Fail>();
    REQUIRE(failed.size() == 1);
    CHECK(failed.front().client == fails);
    CHECK(failed.front().fault == wire::Fault::doubt);
    CHECK(pod.health.doubts.waits(k_pulled, pod.now) != nullptr);
  }
  CHECK(pod.queue.size() == 2);
}

TEST_CASE("beside: who waited in vain hears whether for a container or for the image") {
  BesideAPod pod;
  Request request;
  request.asked = k_pulled;
  CHECK(pod.beside.why_queued(request) == "no payload container became free within 600 seconds");
  pod.beside.may_switch(k_pulled, pod.now);
  CHECK(pod.beside.why_queued(request) ==
        "no payload container had the image within 600 seconds: the node does not say why");
  pod.told(kube::PulledImage::State::failed, "ErrImagePull", "odd words");
  CHECK(pod.beside.why_queued(request) == "no payload container had the image within 600 seconds: odd words");
  pod.told(kube::PulledImage::State::lost, "Evicted");
  CHECK(pod.beside.why_queued(request) == "no payload container became free within 600 seconds");
}
