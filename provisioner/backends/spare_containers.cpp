#include "provisioner/backends/spare_containers.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "lib/base/json.hpp"
#include "lib/base/text.hpp"

namespace glidepod::provisioner {

using Json = nlohmann::json;

namespace {

// docs/decisions/warm.md has what each number costs and gains.
constexpr std::int64_t k_auto_spares = 2;

bool is_payload(const Json& container) {
  return text_view(container, "name").starts_with("payload-");
}

bool has_named(const Json& list, std::string_view name) {
  return std::ranges::any_of(list, [name](const Json& one) { return text_view(one, "name") == name; });
}

// The next payload container's name. The volume that its /dev/shm gets must not be there yet either.
std::string next_name(const Json& spec) {
  for (std::size_t i = 0;; ++i) {
    auto name = fmt::format("payload-{}", i);
    if (!has_named(member(spec, "containers"), name) && !has_named(member(spec, "initContainers"), name) &&
        !has_named(member(spec, "volumes"), name + "-shm"))
      return name;
  }
}

// The command line names the container: glue tells its agent.
void rename_words(Json& words, const std::string& from, const std::string& to) {
  for (auto& word : words)
    if (word == from) word = to;
}

// Whether this user is certainly root, as the container or else its pod says it.
bool is_root(const Json& spec, const Json& container) {
  const auto said = [&](const char* key) -> const Json& {
    const auto& own = member(member(container, "securityContext"), key);
    return own.is_null() ? member(member(spec, "securityContext"), key) : own;
  };
  const auto& user = said("runAsUser");
  return said("runAsNonRoot") != true && (user.is_null() || user == 0);
}

// What a container has that its copy would not have, or would take from the node as well.
bool has_more_than_sizes(const Json& container) {
  const auto& resources = member(container, "resources");
  if (!member(resources, "claims").empty()) return true;
  for (const auto* list : {"requests", "limits"})
    for (const auto& [name, quantity] : member(resources, list).items())
      if (name != "cpu" && name != "memory" && name != "ephemeral-storage") return true;
  return false;
}

}  // namespace

std::vector<Json*> payloads_of(Json& pod) {
  std::vector<Json*> result;
  for (auto& container : pod["spec"]["containers"])
    if (is_payload(container)) result.push_back(&container);
  return result;
}

std::int64_t auto_spares(std::int64_t payloads, std::int64_t cpus) {
  // What the pod has beyond its CPUs is spare already.
  const auto jobs = std::clamp<std::int64_t>(cpus, 1, std::max<std::int64_t>(payloads, 1));
  return std::max<std::int64_t>(1, k_auto_spares - (payloads - jobs));
}

void add_spares(Json& pod, std::int64_t count) {
  const auto payloads = payloads_of(pod);
  if (payloads.empty()) return;
  auto& spec = pod["spec"];
  Json copy = *payloads.back();
  std::string name = copy["name"];
  if (auto mounts = copy.find("volumeMounts"); mounts != copy.end() && mounts->is_array()) {
    Json kept = Json::array();
    for (auto& mount : *mounts)
      if (text_view(mount, "mountPath") != "/dev/shm") kept.push_back(std::move(mount));
    *mounts = std::move(kept);
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const auto next = next_name(spec);
    for (const auto* words : {"command", "args"})
      if (auto all = copy.find(words); all != copy.end()) rename_words(*all, name, next);
    copy["name"] = name = next;
    spec["containers"].push_back(copy);
  }
}

std::string why_not_copied(const Json& pod) {
  const auto& spec = member(pod, "spec");
  for (const auto& container : member(spec, "containers")) {
    if (!is_payload(container)) continue;
    if (has_more_than_sizes(container)) return "a payload container has devices, of which a copy has none";
    if (!is_root(spec, container))
      return "the payload containers do not start as root, so that a job reaches its neighbours";
  }
  return {};
}

bool others_are_guaranteed(const Json& pod) {
  const auto guaranteed = [](const Json& container) {
    const auto& resources = member(container, "resources");
    return is_payload(container) || std::ranges::all_of(std::array{"cpu", "memory"}, [&](const char* name) {
             const auto& limit = member(member(resources, "limits"), name);
             const auto& request = member(member(resources, "requests"), name);
             return !limit.is_null() && (request.is_null() || request == limit);
           });
  };
  const auto& spec = member(pod, "spec");
  return std::ranges::all_of(member(spec, "containers"), guaranteed) &&
         std::ranges::all_of(member(spec, "initContainers"), guaranteed);
}

std::int64_t spares_of(const Json& pilot) {
  std::int64_t result = 0;
  for (const auto* name : {"GLIDEPOD_SPARES", "GLIDEPOD_WARM"})
    for (const auto& variable : member(pilot, "env"))
      if (text_view(variable, "name") == name) {
        const auto value = text_view(variable, "value");
        const auto number = parse_integer(value);
        if (number) result = number.value();
        if (!number && value != "auto") result = 0;
      }
  return result;
}

}  // namespace glidepod::provisioner
