// The table of states and events in pilot-agent/README.md is the one that the code has.
#include "pilot-agent/core/transitions.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "lib/base/file.hpp"
#include "lib/base/text.hpp"

using namespace glidepod;
using namespace glidepod::agent;

namespace {
std::set<std::string> in_code() {
  std::set<std::string> result;
  for (const Transition& t : transitions())
    result.insert(fmt::format("{} {} {}", name_of(t.from), name_of(t.event), name_of(t.to)));
  return result;
}

std::set<std::string> in_docs() {
  const std::string text = read_file(AGENT_README, 1 << 20).value();
  const std::string head = "| from | by | to |";
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
  CHECK(in_docs() == in_code());
  CHECK(in_code().size() == transitions().size());  // none twice
}

TEST_CASE("transitions: every state can be left and reached") {
  for (std::size_t i = 0; i < k_states; ++i) {
    const auto state = static_cast<State>(i);
    CAPTURE(name_of(state));
    CHECK(std::ranges::any_of(transitions(), [&](const Transition& t) { return t.from == state; }));
    CHECK(std::ranges::any_of(transitions(), [&](const Transition& t) { return t.to == state; }));
  }
}
