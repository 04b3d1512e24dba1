// Containers of claims that are kept for their owner's next job (keep_claim_idle).
#include "tests/pilot-agent/core_harness.hpp"

using namespace glidepod;
using namespace glidepod::agent;

namespace {

constexpr uid_t k_slot_1 = 20001, k_slot_2 = 20002;

// Alice's job in slot 1 has ended, and its claim is kept for 20 s. Bob's in slot 2 ended 5 s after it.
struct KeptScene : Harness {
  explicit KeptScene(std::chrono::seconds keep = 20s, const Policy& policy = {}, int containers = 2)
      : Harness(containers, policy) {
    keep_idle = keep;
    ask(k_image_a, wire::Verb::exec, "alice", k_slot_1);
    switch_to(0, k_image_a, k_digest_a);
    end_job(0);
    now += 5s;
    keep_idle = 0s;
    ask(k_image_b, wire::Verb::exec, "bob", k_slot_2);
    switch_to(1, k_image_b, k_digest_b);
    end_job(1);
    REQUIRE(state(0) == State::idle);
    REQUIRE(state(1) == State::idle);
    all.clear();
  }
  // Where a job of carol's comes to, by an image that nobody has had.
  std::string place_carol(uid_t slot_user) {
    ask("docker.io/library/c:1", wire::Verb::exec, "carol", slot_user);
    return last<Patch>().container;
  }
};

}  // namespace

TEST_CASE("kept: another slot's job takes a container without a claim, whichever was used longest ago") {
  KeptScene s;
  CHECK(s.place_carol(k_slot_2) == "payload-1");
  s.ask(k_image_a, wire::Verb::exec, "alice", k_slot_1);
  CHECK(s.noted("container=payload-0 how=warm"));
}

TEST_CASE("kept: not where the job did not ask for it, nor for longer than it asked and its files take") {
  KeptScene none(0s);
  CHECK(none.place_carol(k_slot_2) == "payload-0");
  KeptScene late;
  late.now += 74s;
  CHECK(late.place_carol(k_slot_2) == "payload-1");
  KeptScene over;
  over.now += 76s;
  CHECK(over.place_carol(k_slot_2) == "payload-0");
}

TEST_CASE("kept: its slot's next job, whoever's, ends it") {
  KeptScene s;
  CHECK(s.place_carol(k_slot_1) == "payload-0");
}

TEST_CASE("kept: a job of its owner's other slot ends it, too") {
  KeptScene s;
  s.ask(k_image_a, wire::Verb::exec, "alice", 20003);
  s.end_job(0);
  s.now += 1s;
  s.ask(k_image_b, wire::Verb::exec, "bob", k_slot_2);
  s.end_job(1);
  CHECK(s.place_carol(20004) == "payload-0");
}

TEST_CASE("kept: one that is kept is better than none") {
  KeptScene s;
  s.ask(k_image_b, wire::Verb::exec, "bob", k_slot_2);
  REQUIRE(s.state(1) == State::running);
  CHECK(s.place_carol(20003) == "payload-0");
}

TEST_CASE("kept: no spare container is made of it") {
  Policy policy;
  policy.spares = 2;
  policy.renewal_calm = 0s;
  Harness h(3, policy);
  h.ask(k_image_a, wire::Verb::exec, "bob", k_slot_2);
  h.switch_to(0, k_image_a, k_digest_a);
  for (const int at : {1, 2})
    if (h.state(at) == State::switching) h.switch_to(at, k_image_a, k_digest_a);
  h.keep_idle = 20s;
  h.ask(k_image_b, wire::Verb::exec, "alice", k_slot_1);
  const std::string kept = h.last<Patch>().container;
  const int at = kept.back() - '0';
  h.switch_to(at, k_image_b, k_digest_b);
  h.keep_idle = 0s;
  h.end_job(at);
  // Bob's image is wanted again and again, alice's never: without the claim hers would go.
  for (int i = 0; i < 300; ++i) {
    h.ask(k_image_a, wire::Verb::exec, "bob", k_slot_2);
    for (const int one : {0, 1, 2})
      if (one != at && h.state(one) == State::running) h.end_job(one);
  }
  CHECK(h.state(at) == State::idle);
  h.ask(k_image_b, wire::Verb::exec, "alice", k_slot_1);
  CHECK(h.noted("container=" + kept + " how=warm"));
}
