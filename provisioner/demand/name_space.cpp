#include "provisioner/demand/name_space.hpp"

#include <fmt/format.h>

#include "lib/condor/job_ad.hpp"

namespace glidepod::provisioner {

namespace {

constexpr std::size_t k_longest_pattern = 200;
constexpr int k_most_repeats = 3;

std::string may_be_matched() {
  return fmt::format("regexp({}, RequestK8SNamespace) =?= true", condor::quote(k_namespace_patterns));
}

}  // namespace

bool is_namespace_pattern(std::string_view text) {
  if (text.empty() || text.size() > k_longest_pattern) return false;
  int repeats = 0;
  bool repeatable = false;
  for (const char c : text) {
    const bool repeat = c == '*' || c == '+' || c == '?';
    const bool character = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
    if (repeat ? !repeatable || ++repeats > k_most_repeats : !character && c != '|') return false;
    repeatable = character;
  }
  return true;
}

std::string asks_for_namespace(const std::string& name_space, NamespaceMatching matching) {
  if (matching != NamespaceMatching::pattern)
    return fmt::format("RequestK8SNamespace =?= {}", condor::quote(name_space));
  // ifThenElse evaluates one branch only, so that regexp() gets no pattern that was not looked at.
  return fmt::format(
      R"(ifThenElse({}, regexp(strcat("^(?:", RequestK8SNamespace, ")$"), {}), false) =?= true)",
      may_be_matched(), condor::quote(name_space));
}

std::string asks_or_refused(const std::string& name_space, NamespaceMatching matching) {
  auto asks = asks_for_namespace(name_space, matching);
  if (matching != NamespaceMatching::pattern) return asks;
  return fmt::format("({}) || (RequestK8SNamespace =!= undefined && ({}) =!= true)", asks, may_be_matched());
}

}  // namespace glidepod::provisioner
