#include "provisioner/decide/step.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace glidepod::provisioner;

TEST_CASE("step: each rule has a key of its own, by which it is found again") {
  std::set<std::string_view> keys;
  for (int number = 0; number <= static_cast<int>(Rule::waits_for_unseen); ++number) {
    const auto rule = static_cast<Rule>(number);
    CHECK(keys.insert(key(rule)).second);
    CHECK(rule_named(key(rule)) == rule);
    CHECK(!text({rule, {7, 5, 3, 2}, "words"}).empty());
    CHECK(text({rule, {7, 5, 3, 2}, "words", "east"}).starts_with("east: "));
  }
  CHECK(!rule_named("larger"));
}

TEST_CASE("step: of a place it is not said what is lowered, as nothing is") {
  CHECK(text({Rule::no_node, {700}, {}, "east"}) == "east: no node for 700 s");
  CHECK(text({Rule::no_node, {700, 5, 1}}) == "no node for 700 s: 5 -> 1");
}

TEST_CASE("step: what others say is words, whatever it sounds like") {
  const Step step{Rule::refused, {50}, "quota: breaker: larger"};
  CHECK(text(step) == "refused: quota: breaker: larger: asked again in 50 s");
  CHECK(text({Rule::refused, {}, "422"}) == "refused: 422: one pod tries");
  CHECK(text({Rule::max_pods, {8, 2}}) == "max_pods: 8 -> 2");
  CHECK(text({Rule::max_pods, {8, 2}, {}, "east"}) == "east: max_pods 8: has 2");
  CHECK(text_there({Rule::quota, {}, {}, "east"}) == "quota");
}
