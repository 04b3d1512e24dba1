#include "provisioner/backends/pod_nodes.hpp"

#include <fmt/ranges.h>

#include "lib/base/json.hpp"
#include "lib/base/text.hpp"

namespace glidepod::provisioner {

using Json = nlohmann::json;

namespace {

constexpr const char* k_avoids = "glidepod.io/avoids";

// A term that says nothing matches no node, and one more expression would make it match.
bool says_something(const Json& term) {
  const auto has = [&term](const char* key) {
    const auto found = term.is_object() ? term.find(key) : term.end();
    return term.is_object() && found != term.end() && !found->empty();
  };
  return has("matchExpressions") || has("matchFields");
}

}  // namespace

void require_of_node(Json& pod, const Json& expressions) {
  if (expressions.empty()) return;
  auto& terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
                   ["nodeSelectorTerms"];
  if (!terms.is_array() || terms.empty()) {
    terms = Json::array({{{"matchExpressions", expressions}}});
    return;
  }
  // Any one of the terms is enough for a node: each must say it.
  for (auto& term : terms)
    if (says_something(term))
      for (const auto& expression : expressions) term["matchExpressions"].push_back(expression);
}

void avoid_nodes(Json& pod, const List& hosts) {
  if (hosts.empty()) return;
  require_of_node(pod, {{{"key", k_host_name}, {"operator", "NotIn"}, {"values", hosts}}});
  pod["metadata"]["annotations"][k_avoids] = fmt::format("{}", fmt::join(hosts, ","));
}

List avoided_by(const Json& pod) {
  const auto text = text_view(member(member(pod, "metadata"), "annotations"), k_avoids);
  return text.empty() ? List{} : split(text, ',');
}

}  // namespace glidepod::provisioner
