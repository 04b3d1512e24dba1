// A container gets its job's size before the job, and before another image.

#include "tests/pilot-agent/core_harness.hpp"

using namespace glidepod;
using namespace glidepod::agent;
using kube::Amount;
using kube::Size;

namespace {

constexpr std::int64_t k_whole_gib = std::int64_t{1} << 30;
constexpr Amount k_all{4000, 4 * k_whole_gib}, k_half{2000, 2 * k_whole_gib}, k_quarter{1000, k_whole_gib};

Policy sized() {
  Policy policy;
  policy.resize = true;
  return policy;
}

// A pod of two payload containers that share four CPUs and 4 GiB; each may have all.
struct Sized : Harness {
  explicit Sized(const Policy& policy = sized(), Core::Earlier earlier = Core::Earlier::none,
                 const Amount& limit = k_all)
      : Harness(2, policy, 0, earlier, [&limit](kube::Pod& made) {
          for (std::size_t i : {1U, 2U}) made.containers[i].size = made.statuses[i].size = {k_half, limit};
          made.payload_size = Size{k_all, {8000, 8 * k_whole_gib}};
        }) {
    slot_size = k_half;
  }
  // Bob's job has ended in the first container; the second one, made ready for others, is without a glue.
  void spare_begins() {
    slot_size = {};
    ask(k_image_a, wire::Verb::exec, "bob", 20002);
    switch_to(0, k_image_a, k_digest_a);
    REQUIRE(state(1) == State::switching);
    answer(last<Patch>(), {});
    goodbye(1);
    end_job(0);
    slot_size = k_half;
  }
  // Every glue that was asked says what it has in use.
  void used(std::int64_t kib = 1000) {
    const std::vector<Action> before = all;
    for (const Action& action : before)
      if (const auto* beat = std::get_if<SendBeat>(&action); beat != nullptr && beat->number > heard) {
        heard = beat->number;
        core.on_beat(beat->glue, {beat->number, kib}, now);
        take();
      }
  }
  // The API takes the newest question.
  void resize_taken() {
    const Resize question = last<Resize>();
    for (const auto& change : question.changes)
      for (auto& container : pod.containers)
        if (container.name == change.container) container.size = change.size;
    ++pod.generation;
    core.on_resized(question.attempt, pod, now);
    take();
  }
  // The kubelet shows what the pod says.
  void in_force() {
    for (std::size_t i : {1U, 2U}) pod.statuses[i].size = pod.containers[i].size;
    tell();
  }
  void resize_failed(int status) {
    kube::Failure failure;
    failure.kind = status == 0 ? kube::Failure::Kind::transport : kube::Failure::Kind::status;
    failure.status = status;
    failure.message = "no";
    core.on_resized(last<Resize>().attempt, failure, now);
    take();
  }
  Size size_asked(int i) const {
    for (const auto& change : last<Resize>().changes)
      if (change.container == name(i)) return change.size;
    return {};
  }
  // A job of the slot's size is in container 0, with image A.
  void first_job() {
    ask(k_image_a);
    used();
    resize_taken();
    in_force();
    switch_to(0, k_image_a, k_digest_a);
  }
  // After an earlier agent: at home, and settled.
  void come_home() {
    for (int i = 0; i < 2; ++i) {
      patched_attempt(static_cast<std::uint64_t>(i) + 1);
      goodbye(i);
      hello(i);
      runs_home(i);
    }
    pass(90s);
  }
  std::uint64_t heard = 0;
};

}  // namespace

TEST_CASE("core: a container has its job's size before it has another image, and then the job") {
  Sized h;
  h.ask(k_image_a);
  CHECK(h.state() == State::switching);
  CHECK(h.count<SendBeat>() == 2);
  CHECK(h.count<Resize>() == 0);
  h.used();
  CHECK(h.last<Resize>().changes.size() == 2);
  CHECK(h.size_asked(0) == Size{k_half, k_half});
  CHECK(h.size_asked(1) == Size{k_half, k_half});
  CHECK(h.count<Patch>() == 0);
  h.resize_taken();
  CHECK(h.core.watching());
  CHECK(h.count<Patch>() == 0);
  h.in_force();
  REQUIRE(h.count<Patch>() == 1);
  h.switch_to(0, k_image_a, k_digest_a);
  CHECK(h.count<Launch>() == 1);
  h.end_job();
  // The next one of this size finds it so.
  h.ask(k_image_a);
  CHECK(h.count<Launch>() == 2);
  CHECK(h.count<Resize>() == 1);
}

TEST_CASE("core: a warm container gets another size first, and what grows waits for what shrinks") {
  Sized h;
  h.first_job();
  h.end_job();
  h.slot_size = k_all;
  h.ask(k_image_a);
  CHECK(h.count<Launch>() == 1);
  h.used();
  CHECK(h.last<Resize>().changes.size() == 1);
  CHECK(h.size_asked(1) == Size{{}, {100, 64 << 20}});
  h.resize_taken();
  CHECK(h.count<Resize>() == 2);
  h.in_force();
  CHECK(h.count<Resize>() == 3);
  CHECK(h.size_asked(0) == Size{k_all, k_all});
  h.resize_taken();
  CHECK(h.count<Launch>() == 1);
  h.in_force();
  CHECK(h.count<Launch>() == 2);
  CHECK(h.noted("how=warm"));
}

TEST_CASE("core: what a test had made ready is launched at once") {
  Sized h;
  h.slot_size = {};  // HTCondor has not said it yet
  h.ask(k_image_a, wire::Verb::test);
  h.now += 3s;
  h.switch_to(0, k_image_a, k_digest_a);
  CHECK(h.state() == State::reserved);
  h.slot_size = k_half;
  h.ask(k_image_a);
  CHECK(h.state() == State::switching);
  h.used();
  h.resize_taken();
  h.in_force();
  CHECK(h.count<Launch>() == 1);
  CHECK(h.core.snapshot().containers[0].bound_in == 3s);
  CHECK(h.noted("how=switched"));
}

TEST_CASE("core: where sizes are not served, it is said once and nobody asks again") {
  for (const int status : {403, 404, 405, 422}) {
    Sized h;
    h.ask(k_image_a);
    h.used();
    h.resize_failed(status);
    CHECK(h.noted("event=resize_off reason=\"" + std::to_string(status)));
    CHECK(h.count<Patch>() == 1);
    h.switch_to(0, k_image_a, k_digest_a);
    CHECK(h.count<Launch>() == 1);
    h.ask(k_image_b);
    CHECK(h.count<Patch>() == 2);
    CHECK(h.count<Resize>() == 1);
  }
  Sized busy;  // what may be better later is no such word
  busy.ask(k_image_a);
  busy.used();
  busy.resize_failed(429);
  CHECK_FALSE(busy.noted("event=resize_off"));
  CHECK(busy.count<Patch>() == 1);
  Harness bare(1, sized());
  CHECK(bare.noted("event=resize_off reason=\"the pod lacks the annotations"));
  Harness off;
  CHECK_FALSE(off.noted("event=resize_off"));
}

TEST_CASE("core: a job waits for its size no longer than it may") {
  Sized h;
  h.ask(k_image_a);
  h.used();
  h.resize_taken();
  h.pass(9s);
  CHECK(h.count<Patch>() == 0);
  CHECK(*h.core.next_deadline() == h.now + 1s);
  h.pass(1s);
  CHECK(h.count<Patch>() == 1);
  CHECK(
      h.noted("event=not_resized container=payload-0 reason=\"the kubelet has not resized the containers "
              "within 10 seconds\""));
  h.switch_to(0, k_image_a, k_digest_a);
  CHECK(h.count<Launch>() == 1);
  // What is under way may come about: until then, nothing else is asked.
  CHECK(h.core.watching());
  h.ask(k_image_b);
  CHECK(h.count<Patch>() == 2);
  CHECK(h.count<Resize>() == 1);

  Sized silent;  // glue does not say what it has in use
  silent.ask(k_image_a);
  silent.pass(10s);
  CHECK(silent.count<Resize>() == 0);
  CHECK(silent.count<Patch>() == 1);
}

TEST_CASE("core: a container that may yet be made smaller is no place for a job that needs more") {
  Sized h;
  h.first_job();
  h.end_job();
  h.slot_size = k_all;
  h.ask(k_image_a);  // container 1 is to have 64 MiB
  h.used();
  SUBCASE("as nobody has answered") {
    h.resize_failed(0);
  }
  SUBCASE("as it is not in force yet") {
    h.resize_taken();
    h.pass(10s);
  }
  // Its own container has but half of what the slot has.
  CHECK(h.last<Fail>().fault == wire::Fault::infrastructure);
  CHECK(h.count<Launch>() == 1);
  h.slot_size = k_half;
  h.ask(k_image_a);
  CHECK(h.count<Launch>() == 2);
  h.ask(k_image_b);
  const int patches = h.count<Patch>();
  h.pass(1s);
  CHECK(h.count<Patch>() == patches);
  h.in_force();  // what the pod says: half of it in one case
  h.pass(90s);
  h.used();
  CHECK(h.count<Resize>() + h.count<Patch>() > 2 + patches);
}

TEST_CASE("core: an answer belongs to its question") {
  Sized h;
  h.ask(k_image_a);
  h.used();
  const Resize first = h.last<Resize>();
  h.pass(10s);
  CHECK(h.count<Patch>() == 1);
  h.switch_to(0, k_image_a, k_digest_a);
  h.end_job();
  h.pass(90s);
  h.slot_size = k_quarter;
  h.ask(k_image_a);
  h.used();
  CHECK(h.count<Resize>() == 2);
  kube::Failure refused;
  refused.kind = kube::Failure::Kind::status;
  refused.status = 404;
  h.core.on_resized(first.attempt, refused, h.now);
  h.pod.generation = 5;
  h.pod.pending_resize = {"Deferred", 5};
  h.core.on_resized(first.attempt, h.pod, h.now);
  h.take();
  CHECK_FALSE(h.noted("event=resize_off"));
  CHECK(h.count<Launch>() == 1);
  h.pod.pending_resize.reset();
  h.resize_taken();
  h.in_force();
  CHECK(h.size_asked(1).request == Amount{3000, 3 * k_whole_gib});
  h.resize_taken();
  CHECK(h.count<Launch>() == 2);
}

TEST_CASE("core: an older size in the status is no proof, unless it is of this generation") {
  for (const bool told : {false, true}) {
    Sized h;
    h.ask(k_image_a);
    h.used();
    h.resize_taken();  // the kubelet does nothing about it, not yet
    h.pass(10s);
    h.switch_to(0, k_image_a, k_digest_a);
    h.end_job();
    h.pass(90s);
    h.slot_size = k_all;
    h.ask(k_image_a);
    h.used();
    h.resize_taken();
    h.pod.statuses[2].size.limit = {100, 64 << 20};
    h.tell();
    CHECK(h.last<Resize>().changes.front().container == "payload-0");
    h.resize_taken();
    CHECK(h.count<Launch>() == 1);
    if (told) h.pod.observed_generation = h.pod.generation;
    h.tell();
    CHECK(h.count<Launch>() == (told ? 2 : 1));
    h.pass(10s);
    CHECK(h.count<Fail>() == (told ? 0 : 1));
  }
}

TEST_CASE("core: what the node cannot do is not waited for") {
  Sized h;
  h.ask(k_image_a);
  h.used();
  h.resize_taken();
  h.pod.pending_resize = {"Deferred", h.pod.generation - 1};  // an earlier one
  h.tell();
  CHECK(h.count<Patch>() == 0);
  h.pod.pending_resize = {"Infeasible", h.pod.generation};
  h.tell();
  CHECK(h.count<Patch>() == 1);
  CHECK(h.noted("the kubelet says that the resize is Infeasible"));
}

TEST_CASE("core: one size at a time, and who needs none does not wait") {
  Sized h;
  h.first_job();
  h.end_job();
  h.ask(k_image_a, wire::Verb::test);
  CHECK(h.state() == State::reserved);
  h.slot_size = k_quarter;
  h.ask(k_image_b, wire::Verb::exec, "bob", 20002);
  CHECK(h.state(1) == State::switching);
  h.ask("docker.io/library/c:1", wire::Verb::exec, "carol", 20003);
  h.slot_size = k_half;
  h.ask(k_image_a);
  CHECK(h.count<Launch>() == 2);
  CHECK(h.count<Patch>() == 1);
}

TEST_CASE("core: a container that ends while it gets its size goes on to its image") {
  Sized h;
  h.ask(k_image_a);
  h.used();
  h.resize_taken();
  h.goodbye(0);
  REQUIRE(h.count<Patch>() == 1);
  h.pass(10s);  // its size is not waited for
  CHECK(h.count<Patch>() == 1);
  h.patched();
  h.hello(0);
  h.runs(0, k_image_a, "docker.io/library/a@" + k_digest_a);
  CHECK(h.count<Launch>() == 1);

  Sized other;  // of another one nobody waits for what it has in use
  other.ask(k_image_a);
  other.core.on_beat(other.glue[0], {other.last<SendBeat>().number - 1, 1000}, other.now);
  CHECK(other.count<Resize>() == 0);
  other.lose(1);
  other.take();
  CHECK(other.count<Resize>() == 1);
  CHECK(other.size_asked(1) == Size{});
}

TEST_CASE("core: nobody's memory in use is taken from it") {
  Sized h;
  h.ask(k_image_a);
  h.used(3 << 20);  // 3 GiB, in a slot of 2
  CHECK(h.count<Resize>() == 0);
  CHECK(h.count<Patch>() == 1);

  Sized unknown;
  unknown.ask(k_image_a);
  unknown.used(0);
  CHECK(unknown.count<Resize>() == 0);
  CHECK(unknown.count<Patch>() == 1);
}

TEST_CASE("core: a job that is held for its memory is told its slot's limit") {
  Sized h;
  h.first_job();
  h.lose(0);
  kube::Termination end{"OOMKilled", "", 137, 0, "test://" + Harness::name(0) + ".1"};
  h.status(0).last_terminated = end;
  h.waits(0, "CrashLoopBackOff", "back-off");
  CHECK(h.last<Hold>().reason.find("memory limit of 2048 megabytes") != std::string::npos);
}

TEST_CASE("core: after an earlier agent, nobody knows what was asked") {
  Sized h(sized(), Core::Earlier::some);
  CHECK(h.core.watching());
  h.pass(90s);
  CHECK(*h.core.next_deadline() > h.now);
}

TEST_CASE("core: a slot of which half is not known asks for no size") {
  for (const Amount& slot : {Amount{0, k_whole_gib}, Amount{1000, 0}}) {
    Sized h;
    h.slot_size = slot;
    h.ask(k_image_a);
    CHECK(h.count<SendBeat>() == 0);
    CHECK(h.count<Patch>() == 1);
  }
}

TEST_CASE("core: a container without a limit is large enough for any slot") {
  Harness h(1, sized());
  h.slot_size = k_all;
  h.ask(k_image_a);
  h.switch_to(0, k_image_a, k_digest_a);
  CHECK(h.count<Launch>() == 1);
}

TEST_CASE("core: what a pod was made with is enough for its jobs, what an earlier agent has left is not") {
  for (const auto earlier : {Core::Earlier::none, Core::Earlier::some}) {
    Sized h(sized(), earlier, k_quarter);
    if (earlier == Core::Earlier::some) h.come_home();
    h.ask(k_image_a);
    h.used();
    h.resize_failed(404);
    CHECK(h.count<Fail>() == (earlier == Core::Earlier::some ? 1 : 0));
    if (earlier == Core::Earlier::none) continue;
    // So it is of what is asked for later, whether the container has it or would be given it.
    const int patches = h.count<Patch>();
    for (const char* image : {"reg.example/pilot:1", "docker.io/library/b:1"}) h.ask(image);
    CHECK(h.count<Fail>() == 3);
    CHECK(h.last<Fail>().message == "the job's payload container cannot get the memory of the job's slot");
    CHECK(h.count<Patch>() == patches);
    CHECK(h.core.snapshot().failures == 3);
  }
}

TEST_CASE("core: a container that is told its image before anybody can size it gets its size after that") {
  Sized h;
  h.slot_size = {};
  h.ask(k_image_b, wire::Verb::exec, "bob", 20002);
  h.switch_to(0, k_image_b, k_digest_b);
  h.ask(k_image_a);
  h.patch_failed(0);    // no answer
  h.patch_failed(403);  // and the way home is refused
  REQUIRE(h.state(1) == State::broken);
  h.slot_size = k_half;
  h.ask(k_image_a);
  CHECK(h.count<SendBeat>() == 0);
  h.patched();
  h.goodbye(1);
  h.hello(1);
  h.runs(1, "reg.example/other:1", "reg.example/other@" + k_digest_b);
  h.pass(8s);
  h.runs(1, k_image_a, "docker.io/library/a@" + k_digest_a);
  CHECK(h.count<Launch>() == 1);
  CHECK(h.count<SendBeat>() == 1);
  h.tell();
  CHECK_FALSE(h.core.watching());  // glue is asked, and not the API
  const int patches = h.count<Patch>();
  h.pass(2s);  // then what the status had shown before would have been too long
  CHECK(h.count<Patch>() == patches);
  h.used();
  CHECK(h.size_asked(1) == Size{k_half, k_half});
  h.resize_taken();
  h.in_force();
  CHECK(h.count<Launch>() == 2);
  CHECK(h.noted("how=switched"));
}

TEST_CASE("core: a job whose time is over while its container gets its size has done nothing to that") {
  Policy policy = sized();
  policy.bind_deadline = 5s;
  Sized h(policy);
  h.ask(k_image_a);
  h.used();
  h.resize_taken();
  h.pass(5s);
  CHECK(h.count<Fail>() == 1);
  CHECK(h.state() == State::idle);
  h.pass(5s);
  CHECK(h.count<Patch>() == 0);
  h.ask(k_image_a);
  CHECK(h.count<Resize>() == 1);  // what was asked for may yet come about
  CHECK(h.count<Patch>() == 1);
}

TEST_CASE("core: how long an image took to start limits nothing while the container gets its size") {
  Policy policy = sized();
  policy.spares = 1;
  Sized h(policy);
  h.spare_begins();
  Time::duration limit{};
  SUBCASE("its glue was silent") {
    h.runs(1, k_image_a, "docker.io/library/a@" + k_digest_a);
    limit = 30s;
  }
  SUBCASE("its image could not be pulled") {
    h.waits(1, "ErrImagePull", "dial tcp: i/o timeout");
    limit = 120s;
  }
  h.ask(k_image_a);
  h.pass(limit - 1s);
  h.hello(1);
  CHECK(h.count<SendBeat>() > 0);
  h.pass(1s);
  CHECK(h.count<Fail>() == 0);
  h.used();
  h.resize_taken();
  h.in_force();
  CHECK(h.count<Launch>() == 2);
}

TEST_CASE("core: what the API refuses for now changes no size, and whoever waits goes on") {
  Sized h;
  h.ask(k_image_a);
  h.used();
  h.slot_size = {};
  h.ask(k_image_b, wire::Verb::exec, "bob", 20002);
  CHECK(h.count<Patch>() == 0);
  h.resize_failed(429);
  CHECK(h.count<Patch>() == 2);
  h.switch_to(0, k_image_a, k_digest_a);
  h.used();  // it is tried once more
  h.resize_failed(429);
  h.end_job();
  const int beats = h.count<SendBeat>();
  h.slot_size = k_all;  // as it was made
  h.ask(k_image_a);
  CHECK(h.state(0) == State::running);
  CHECK(h.count<SendBeat>() == beats);
}

TEST_CASE("core: an answer from an API server that is behind does not delay what the status has shown") {
  Sized h;
  h.ask(k_image_a);
  h.used();
  h.slot_size = {};
  h.ask(k_image_b, wire::Verb::exec, "bob", 20002);
  const Resize question = h.last<Resize>();
  for (const auto& change : question.changes)
    for (std::size_t i : {1U, 2U})
      if (h.pod.containers[i].name == change.container)
        h.pod.containers[i].size = h.pod.statuses[i].size = change.size;
  h.pod.generation = h.pod.observed_generation = 5;
  h.pod.resource_version = "9";
  h.tell();
  CHECK(h.count<Patch>() == 0);
  h.pod.resource_version = "8";
  h.core.on_resized(question.attempt, h.pod, h.now);
  h.take();
  CHECK(h.count<Patch>() == 2);
}

TEST_CASE("core: one reason why a container was not resized is said once") {
  Sized h;
  const auto said = [&h] {
    return std::ranges::count_if(h.all, [](const Action& action) {
      const auto* note = std::get_if<Note>(&action);
      return note != nullptr && note->text.starts_with("event=not_resized");
    });
  };
  for (const int status : {429, 429, 503}) {
    h.ask(k_image_a, wire::Verb::test);
    h.used();
    h.resize_failed(status);
    h.patch_failed(422, "denied request: registry");
    h.pass(90s);
  }
  CHECK(said() == 2);
}

TEST_CASE("core: a warm container whose glue does not say what it has in use is made anew") {
  Sized h;
  h.first_job();
  h.end_job();
  h.slot_size = k_quarter;
  h.ask(k_image_a);
  const int patches = h.count<Patch>();
  h.pass(3s);
  CHECK(h.count<Launch>() == 1);
  REQUIRE(h.count<Patch>() == patches + 1);
  CHECK(h.last<Patch>().image.ends_with("@" + k_digest_a));
  SUBCASE("which is no other image") {
    h.switch_to(0, k_image_a, k_digest_a);
    h.used();
    for (int round = 0; round < 2; ++round) {
      h.resize_taken();
      h.in_force();
    }
    CHECK(h.count<Launch>() == 2);
    CHECK(h.noted("how=fresh"));
  }
  SUBCASE("unless the API refuses that") {
    h.patch_failed(403);
    CHECK(h.state() == State::idle);
  }
}

TEST_CASE("core: a warm container that turns out to run something else gets its image after its size") {
  Sized h;
  h.slot_size = {};
  h.ask(k_image_a);
  h.patched();
  h.goodbye();
  h.hello();
  h.end_job();
  h.slot_size = k_quarter;
  h.ask(k_image_a);
  REQUIRE(h.state() == State::switching);
  h.runs_home(0);
  CHECK(h.noted("event=doubtful"));
  const int patches = h.count<Patch>();
  h.used();
  h.resize_taken();
  h.in_force();
  h.resize_taken();
  h.in_force();
  CHECK(h.count<Launch>() == 1);
  CHECK(h.count<Patch>() == patches + 1);
}

TEST_CASE("core: a container whose job is gone before it has its size is free once it has it") {
  Sized h;
  h.first_job();
  h.end_job();
  h.slot_size = k_quarter;
  const ClientId client = h.ask(k_image_a);
  h.used();
  h.core.on_client_gone(client, h.now);
  for (int round = 0; round < 2; ++round) {
    h.resize_taken();
    h.in_force();
  }
  CHECK(h.state() == State::idle);
  CHECK(h.count<Launch>() == 1);
}

TEST_CASE("core: a container has no more than the kubelet shows, whatever the pod says") {
  Sized h(sized(), Core::Earlier::some);
  for (std::size_t i : {1U, 2U}) h.pod.statuses[i].size.limit = k_quarter;
  h.come_home();
  h.ask(k_image_a);
  h.used();
  h.resize_failed(404);
  CHECK(h.count<Fail>() == 1);
}

TEST_CASE("core: a container that could not get its size is not the next one that is tried") {
  Sized h(sized(), Core::Earlier::some);
  h.pod.containers[1].size.limit = h.pod.statuses[1].size.limit = k_quarter;
  h.come_home();
  h.ask(k_image_a);
  h.used();
  h.resize_failed(404);
  REQUIRE(h.count<Fail>() == 1);
  h.now += 1s;
  h.ask(k_image_a);
  CHECK(h.count<Fail>() == 1);
  CHECK(h.last<Patch>().container == "payload-1");
}

TEST_CASE("core: of another container whose glue does not say what it has in use no limit is lowered") {
  Sized h;
  h.ask(k_image_a);
  h.core.on_beat(
      h.glue[0],
      {h.last<SendBeat>([&](const SendBeat& beat) { return beat.glue == h.glue[0]; }).number, 1000}, h.now);
  h.take();
  CHECK(h.count<Resize>() == 0);
  h.pass(3s);
  CHECK(h.size_asked(0) == Size{k_half, k_half});
  CHECK(h.size_asked(1) == Size{});
}

TEST_CASE("core: where a resize got no answer the status proves nothing before all has come about") {
  Sized h;
  h.first_job();
  h.end_job();
  h.slot_size = k_all;
  h.ask(k_image_a);
  h.used();
  h.resize_taken();
  h.in_force();
  h.resize_failed(0);  // of what was to grow
  h.tell();
  CHECK(h.core.watching());
  h.pass(90s);
  CHECK_FALSE(h.core.watching());
}

TEST_CASE("core: a size that comes about late is waited for no longer than that") {
  Sized h;
  h.ask(k_image_a);
  h.used();
  h.resize_taken();
  h.pass(10s);
  h.switch_to(0, k_image_a, k_digest_a);
  h.end_job();
  CHECK(h.core.watching());
  h.in_force();
  CHECK_FALSE(h.core.watching());
}

TEST_CASE("core: where nothing was asked of the API nothing can come about") {
  Sized h;
  h.ask(k_image_a);
  h.used(0);  // nobody knows what is in use
  h.switch_to(0, k_image_a, k_digest_a);
  h.used(0);
  h.end_job();
  CHECK(h.count<Resize>() == 0);
  CHECK_FALSE(h.core.watching());
}

TEST_CASE(
    "core: a size that the pod has already, and the kubelet does not, is waited for and not asked again") {
  Sized h;
  h.ask(k_image_a);
  h.used();
  h.resize_taken();
  h.pass(10s);
  h.switch_to(0, k_image_a, k_digest_a);
  h.end_job();
  h.pass(90s);
  REQUIRE(h.count<Launch>() == 1);
  h.ask(k_image_a);
  h.used();
  h.tell();
  CHECK(h.core.watching());
  CHECK(h.count<Launch>() == 1);
  SUBCASE("in time") {
    h.in_force();
  }
  SUBCASE("for so long, and it may come about later") {
    h.pass(10s);
    h.end_job();
    CHECK(h.core.watching());
  }
  CHECK(h.count<Launch>() == 2);
  CHECK(h.count<Resize>() == 1);
}

TEST_CASE("core: a container without a limit that was asked to have one may get it yet") {
  Sized h(sized(), Core::Earlier::none, {});
  h.slot_size = k_quarter;
  h.ask(k_image_a);
  h.used();
  h.resize_failed(0);
  h.switch_to(0, k_image_a, k_digest_a);
  h.end_job();
  REQUIRE(h.count<Launch>() == 1);
  h.slot_size = k_half;
  h.ask(k_image_a);
  CHECK(h.count<Launch>() == 1);
}

TEST_CASE("core: a job whose container is ready while another one gets its size waits for its own") {
  Policy policy = sized();
  policy.spares = 1;
  Sized h(policy);
  h.spare_begins();
  const ClientId alice = h.ask(k_image_a);
  const ClientId bob = h.ask(k_image_a, wire::Verb::exec, "bob", 20002);
  REQUIRE(h.state(0) == State::switching);
  SUBCASE("unless the pod has that already") {
    h.pod.containers[2].size.limit = k_half;
    h.tell();
    h.hello(1);
    CHECK(h.last<Launch>().client == alice);
    return;
  }
  h.hello(1);
  CHECK(h.count<Launch>() == 1);
  CHECK(h.state(1) == State::idle);
  h.used();
  h.resize_taken();
  h.in_force();
  CHECK(h.last<Launch>().client == bob);
  h.used();
  h.resize_taken();
  h.in_force();
  CHECK(h.last<Launch>().client == alice);
}
