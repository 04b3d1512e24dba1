#include "podhost/api/resize.hpp"

#include <fmt/format.h>

#include <array>

#include "lib/base/json.hpp"
#include "lib/kube/pod.hpp"
#include "lib/kube/quantity.hpp"
#include "podhost/api/access.hpp"
#include "podhost/api/patch.hpp"

namespace glidepod::podhost {
namespace {

using kube::ApiError;
using Kind = kube::FieldError::Kind;

constexpr std::array k_lists = {"containers", "initContainers"};
constexpr std::array k_groups = {"requests", "limits"};
constexpr std::array k_names = {"cpu", "memory"};

Json member(const Json& object, const char* key) {
  return object.is_object() && object.contains(key) ? object.at(key) : Json();
}

Json quantity_in(const Json& container, const char* group, const char* name) {
  return member(member(member(container, "resources"), group), name);
}

std::int64_t amount_of(const Json& quantity, std::string_view name) {
  if (quantity.is_null()) return 0;
  const std::string text = quantity.is_string() ? quantity.get<std::string>() : json_text(quantity);
  const auto amount = name == "cpu" ? kube::parse_milli(text) : kube::parse_quantity(text);
  return amount ? amount.value() : 0;
}

void check_container(const ContainerSpec& container, const std::string& path,
                     std::vector<kube::FieldError>* errors) {
  const Resources& r = container.resources;
  const auto check = [&](const std::optional<std::int64_t>& request, const std::optional<std::int64_t>& limit,
                         const char* name) {
    if (request && limit && *request > *limit)
      errors->push_back({Kind::invalid, fmt::format("{}.requests", path),
                         fmt::format("must be less than or equal to {} limit", name)});
  };
  check(r.cpu_request_milli, r.cpu_limit_milli, "cpu");
  check(r.memory_request, r.memory_limit, "memory");
}

}  // namespace

Result<Json> check_resize(const Json& old_pod, const Json& new_pod, const SpecRules& rules) {
  const std::string name = old_pod.at("metadata").at("name").get<std::string>();
  // The version, the name and the uid, as for any update.
  Json unchanged = new_pod;
  if (unchanged.is_object() && unchanged.contains("spec")) unchanged["spec"] = old_pod.at("spec");
  TRY(check_update(old_pod, std::move(unchanged)));

  Json result = old_pod;
  std::vector<kube::FieldError> errors;
  for (const auto* list : k_lists) {
    if (!result["spec"].contains(list)) continue;
    Json& containers = result["spec"][list];
    const Json wanted = member(new_pod.at("spec"), list);
    for (std::size_t i = 0; i < containers.size() && wanted.is_array() && i < wanted.size(); ++i) {
      if (list == k_lists[1] && !is_sidecar(containers[i])) continue;
      for (const auto* group : k_groups)
        for (const auto* what : k_names) {
          const Json now = quantity_in(containers[i], group, what),
                     next = quantity_in(wanted[i], group, what);
          if (next == now) continue;
          if (next.is_null())
            errors.push_back({Kind::forbidden, fmt::format("spec.{}[{}].resources.{}", list, i, group),
                              fmt::format("resource {} cannot be removed", group)});
          else
            containers[i]["resources"][group][what] = next;
        }
    }
  }
  if (errors.empty() && result.at("spec") != new_pod.at("spec"))
    errors.push_back({Kind::forbidden, "spec", "only cpu and memory resources of containers are mutable"});
  if (!errors.empty()) return ApiError::invalid_pod(name, errors);
  const auto parsed = parse_pod(result, rules);
  if (!parsed) return parsed.error();
  for (const auto& [list, specs] : {std::pair(k_lists[0], &parsed->spec.containers),
                                    std::pair(k_lists[1], &parsed->spec.init_containers)})
    for (std::size_t i = 0; i < specs->size(); ++i)
      check_container((*specs)[i], fmt::format("spec.{}[{}].resources", list, i), &errors);
  if (const auto before = parse_pod(old_pod, rules);
      before && qos_class(before->spec) != qos_class(parsed->spec))
    errors.push_back({Kind::invalid, "spec", "Pod QOS Class may not change as a result of resizing"});
  if (!errors.empty()) return ApiError::invalid_pod(name, errors);
  return result;
}

Result<void> refuse_own_resize(const Json& old_pod, const Json& new_pod) {
  const std::string name = old_pod.at("metadata").at("name").get<std::string>();
  const Json& before = old_pod.at("spec").at("containers");
  const Json& after = new_pod.at("spec").at("containers");
  if (member(before.at(0), "resources") != member(after.at(0), "resources"))
    return ApiError::denied(name, "a pod may resize only its own containers other than the first");
  const Json annotations = member(old_pod.at("metadata"), "annotations");
  for (const auto* group : k_groups)
    for (const auto* what : k_names) {
      const std::string key = fmt::format("{}{}.{}", kube::k_payload_size, group, what);
      const std::int64_t most = amount_of(member(annotations, key.c_str()), what);
      std::int64_t sum = 0;
      for (std::size_t i = 1; i < after.size(); ++i)
        sum += amount_of(quantity_in(after.at(i), group, what), what);
      for (const Json& container : member(new_pod.at("spec"), "initContainers"))
        if (is_sidecar(container)) sum += amount_of(quantity_in(container, group, what), what);
      if (sum > most)
        return ApiError::denied(
            name,
            fmt::format("its containers other than the first may not have more than its annotation {}", key));
    }
  return {};
}

}  // namespace glidepod::podhost
