// The table of states and events in pilot-agent/README.md is the one that the code has.
#include "pilot-agent/core/transitions.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "lib/base/file.hpp"
#include "lib/base/text.hpp"
#include "pilot-agent/core/pulls.hpp"

using namespace glidepod;
using namespace glidepod::agent;

namespace {
template <typename Table>
std::set<std::string> in_code(const Table& table) {
  std::set<std::string> result;
  for (const auto& t : table)
    result.insert(fmt::format("{} {} {}", name_of(t.from), name_of(t.event), name_of(t.to)));
  return result;
}

std::set<std::string> in_docs(const std::string& head) {
  const std::string text = read_file(AGENT_README, 1 << 20).value();
  const auto begin = text.find(head);
  REQUIRE(begin != std::string::npos);
  std::set<std::string> result;
  for (const std::string& line : split(text.substr(begin + head.size()), '\n')) {
    if (line.empty() || line.starts_with("|---")) continue;
    if (!line.starts_with("|")) break;
    const auto cells = split(line, '|');
    REQUIRE(cells.size() >= 4);
    for (const std::string& to : split(cells[3], ','))
      result.insert(fmt::format("{} {} {}", trim(cells[1]), trim(cells[2]), trim(to)));
  }
  return result;
}
}  // namespace

TEST_CASE("transitions: the table for people is the one that the code has") {
  CHECK(in_docs("| from | by | to |") == in_code(transitions()));
  CHECK(in_code(transitions()).size() == transitions().size());  // none twice
}

TEST_CASE("transitions: the same of images that are pulled beside the pod") {
  CHECK(in_docs("| of a pull, from | by | to |") == in_code(pull_transitions()));
  CHECK(in_code(pull_transitions()).size() == pull_transitions().size());
}

TEST_CASE("transitions: every state can be left and reached") {
  for (std::size_t i = 0; i < k_states; ++i) {
    const auto state = static_cast<State>(i);
    CAPTURE(name_of(state));
    CHECK(std::ranges::any_of(transitions(), [&](const Transition& t) { return t.from == state; }));
    CHECK(std::ranges::any_of(transitions(), [&](const Transition& t) { return t.to == state; }));
  }
}
