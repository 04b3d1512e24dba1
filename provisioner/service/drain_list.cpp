#include "provisioner/service/drain_list.hpp"

#include <nlohmann/json.hpp>
#include <optional>

#include "lib/base/json.hpp"
#include "lib/base/text.hpp"
#include "provisioner/backends/pods.hpp"
#include "provisioner/service/memory.hpp"

namespace glidepod::provisioner {

using Json = nlohmann::json;

namespace {

constexpr std::size_t k_longest_entry = 600;  // a place, a slash, and a node's name

std::optional<Drained> read_entry(const Json& json) {
  const auto kind = text_view(json, "kind"), mode = text_view(json, "mode");
  Drained entry{.name = text_of(json, "name"),
                .reason = one_line(text_view(json, "reason"), k_longest_drained)};
  for (const auto one : {Drained::Kind::group, Drained::Kind::node, Drained::Kind::place})
    if (kind == to_string(one)) entry.kind = one;
  if (mode == to_string(Drained::Mode::kill)) entry.mode = Drained::Mode::kill;
  const auto& since = member(json, "since");
  if (kind != to_string(entry.kind) || mode != to_string(entry.mode) || entry.name.empty() ||
      entry.name.size() > k_longest_entry || entry.reason.empty() || !since.is_number_integer())
    return std::nullopt;
  entry.since = Time(Seconds(since.get<std::int64_t>()));
  return entry;
}

}  // namespace

Result<DrainList> drained_in(const Json& lease) {
  const auto text = annotation_of(lease, k_drained_annotation);
  DrainList result;
  if (text.empty()) return result;
  const auto json = json_from(text);
  if (!json.is_array() || json.size() > k_most_drained)
    return error("{} of the lease is no list of at most {} entries", k_drained_annotation, k_most_drained);
  for (const auto& one : json) {
    auto entry = read_entry(one);
    if (!entry)
      return error("{} of the lease: {} is no entry", k_drained_annotation, one_line(json_text(one), 200));
    result.push_back(*std::move(entry));
  }
  return result;
}

Json drained_json(const DrainList& list) {
  Json result = Json::array();
  for (const auto& entry : list)
    result.push_back({{"kind", to_string(entry.kind)},
                      {"name", entry.name},
                      {"mode", to_string(entry.mode)},
                      {"reason", entry.reason},
                      {"since", entry.since.time_since_epoch().count()}});
  return result;
}

Result<Json> with_drained(Json lease, const DrainList& list) {
  if (list.size() > k_most_drained)
    return error("{} are drained already, and no more can be: undrain some of them", k_most_drained);
  auto& annotations = lease["metadata"]["annotations"];
  if (!annotations.is_object()) annotations = Json::object();
  if (list.empty())
    annotations.erase(k_drained_annotation);
  else
    annotations[k_drained_annotation] = json_text(drained_json(list));
  return lease;
}

}  // namespace glidepod::provisioner
