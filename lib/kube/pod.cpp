#include "lib/kube/pod.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "lib/base/json.hpp"
#include "lib/kube/pulls.hpp"
#include "lib/kube/quantity.hpp"

namespace glidepod::kube {
namespace {

using Json = nlohmann::json;

Result<std::string> text(const Json& object, const char* key) {
  const Json& value = member(object, key);
  if (value.is_null()) return std::string();
  if (!value.is_string()) return error("{} is not a string", key);
  return value.get_ref<const std::string&>();
}

Result<std::int64_t> integer(const Json& object, const char* key) {
  const Json& value = member(object, key);
  if (value.is_null()) return std::int64_t{0};
  if (!value.is_number_integer()) return error("{} is not a whole number", key);
  return value.get<std::int64_t>();
}

// The API server writes quantities as text; others may write a plain number. A quantity that cannot be read
// counts as missing.
using ParseQuantity = Result<std::int64_t> (*)(std::string_view);
Result<std::int64_t> quantity(const Json& object, const char* key, ParseQuantity read) {
  const Json& value = member(object, key);
  if (value.is_null()) return std::int64_t{0};
  if (!value.is_string() && !value.is_number()) return error("{} is not a quantity", key);
  const auto parsed = read(value.is_string() ? value.get<std::string>() : json_text(value));
  return parsed ? parsed.value() : std::int64_t{0};
}

Result<const Json*> part(const Json& object, const char* key, Json::value_t type) {
  const Json& value = member(object, key);
  if (!value.is_null() && value.type() != type) return error("{} is not of the right type", key);
  return &value;
}

Result<Json> parse(std::string_view document) {
  Json json = json_from(document);
  if (json.is_discarded()) return error("malformed JSON");
  if (!json.is_object()) return error("not a JSON object");
  return json;
}

// Of the keys PREFIXcpu and PREFIXmemory.
Result<Amount> amount_in(const Json& json, const std::string& prefix = {}) {
  Amount amount;
  amount.cpu = TRY(quantity(json, (prefix + "cpu").c_str(), parse_milli));
  amount.memory = TRY(quantity(json, (prefix + "memory").c_str(), parse_quantity));
  return amount;
}

Result<Amount> amount(const Json& resources, const char* key) {
  return amount_in(*TRY(part(resources, key, Json::value_t::object)));
}

Result<Size> size_of(const Json& container) {
  const Json& resources = *TRY(part(container, "resources", Json::value_t::object));
  Size size;
  size.request = TRY(amount(resources, "requests"));
  size.limit = TRY(amount(resources, "limits"));
  return size;
}

// The size of all payload containers together; nothing unless all four annotations are there.
Result<std::optional<Size>> payload_size(const Json& annotations) {
  const auto of = [&annotations](const char* group) -> Result<Amount> {
    return amount_in(annotations, fmt::format("{}{}.", k_payload_size, group));
  };
  Size size;
  size.request = TRY(of("requests"));
  size.limit = TRY(of("limits"));
  const bool whole =
      size.request.cpu > 0 && size.request.memory > 0 && size.limit.cpu > 0 && size.limit.memory > 0;
  return whole ? std::optional(size) : std::nullopt;
}

Result<std::optional<Pod::PendingResize>> pending_resize(const Json& status) {
  for (const Json& condition : *TRY(part(status, "conditions", Json::value_t::array))) {
    if (TRY(text(condition, "type")) != "PodResizePending" || TRY(text(condition, "status")) != "True")
      continue;
    Pod::PendingResize pending;
    pending.reason = TRY(text(condition, "reason"));
    pending.generation = TRY(integer(condition, "observedGeneration"));
    return std::optional(std::move(pending));
  }
  return std::optional<Pod::PendingResize>();
}

Result<std::optional<Termination>> termination(const Json& state) {
  const Json& json = *TRY(part(state, "terminated", Json::value_t::object));
  if (json.is_null()) return std::optional<Termination>();
  Termination result;
  result.reason = TRY(text(json, "reason"));
  result.message = TRY(text(json, "message"));
  result.exit_code = static_cast<int>(TRY(integer(json, "exitCode")));
  result.signal = static_cast<int>(TRY(integer(json, "signal")));
  result.container_id = TRY(text(json, "containerID"));
  return std::optional(result);
}

Result<ContainerStatus> container_status(const Json& json) {
  if (!json.is_object()) return error("containerStatuses holds something else than objects");
  ContainerStatus result;
  result.name = TRY(text(json, "name"));
  result.image = TRY(text(json, "image"));
  result.image_id = TRY(text(json, "imageID"));
  result.container_id = TRY(text(json, "containerID"));
  result.restart_count = TRY(integer(json, "restartCount"));
  result.size = TRY(size_of(json));
  const Json& state = *TRY(part(json, "state", Json::value_t::object));
  const Json& waiting = *TRY(part(state, "waiting", Json::value_t::object));
  result.terminated = TRY(termination(state));
  result.last_terminated = TRY(termination(*TRY(part(json, "lastState", Json::value_t::object))));
  if (!waiting.is_null()) {
    result.state = ContainerStatus::State::waiting;
    result.reason = TRY(text(waiting, "reason"));
    result.message = TRY(text(waiting, "message"));
  } else if (result.terminated) {
    result.state = ContainerStatus::State::terminated;
  } else if (!member(state, "running").is_null()) {
    result.state = ContainerStatus::State::running;
  }
  return result;
}

Result<ContainerSpec> container_spec(const Json& json) {
  if (!json.is_object()) return error("containers holds something else than objects");
  ContainerSpec result;
  result.name = TRY(text(json, "name"));
  result.image = TRY(text(json, "image"));
  for (const Json& word : *TRY(part(json, "command", Json::value_t::array))) {
    if (!word.is_string()) return error("command holds something else than strings");
    result.command.push_back(word.get<std::string>());
  }
  result.size = TRY(size_of(json));
  return result;
}

// Init containers that end before the others start are left out.
Result<void> read_sidecars(const Json& spec, const Json& status, Pod* pod) {
  std::size_t place = 0;
  for (const Json& container : *TRY(part(spec, "initContainers", Json::value_t::array))) {
    auto parsed = TRY(container_spec(container));
    parsed.sidecar = TRY(text(container, "restartPolicy")) == "Always";
    parsed.place = place++;
    if (parsed.sidecar) pod->containers.push_back(std::move(parsed));
  }
  for (const Json& container : *TRY(part(status, "initContainerStatuses", Json::value_t::array))) {
    auto parsed = TRY(container_status(container));
    if (pod->container(parsed.name) != nullptr) pod->statuses.push_back(std::move(parsed));
  }
  return {};
}

// Of the container in the pod's JSON.
std::string path_of(bool sidecar, std::size_t place) {
  return fmt::format("/spec/{}/{}", sidecar ? "initContainers" : "containers", place);
}

Result<Pod> pod_of(const Json& json) {
  Pod pod;
  const Json& metadata = *TRY(part(json, "metadata", Json::value_t::object));
  pod.name = TRY(text(metadata, "name"));
  pod.uid = TRY(text(metadata, "uid"));
  pod.resource_version = TRY(text(metadata, "resourceVersion"));
  const Json& annotations = *TRY(part(metadata, "annotations", Json::value_t::object));
  pod.wanted_images = read_wanted(TRY(text(annotations, k_wanted_images)));
  pod.pulled_images = read_pulled(TRY(text(annotations, k_pulled_images)));
  pod.payload_size = TRY(payload_size(annotations));
  pod.generation = TRY(integer(metadata, "generation"));
  pod.likely_images = read_likely(TRY(text(annotations, k_likely_images)));
  const Json& spec = *TRY(part(json, "spec", Json::value_t::object));
  for (const Json& container : *TRY(part(spec, "containers", Json::value_t::array)))
    pod.containers.push_back(TRY(container_spec(container)));
  for (std::size_t i = 0; i < pod.containers.size(); ++i) pod.containers[i].place = i;
  if (!member(spec, "terminationGracePeriodSeconds").is_null())
    pod.grace_seconds = TRY(integer(spec, "terminationGracePeriodSeconds"));
  pod.restarts = TRY(text(spec, "restartPolicy")) != "Never";
  pod.pull_secrets = !TRY(part(spec, "imagePullSecrets", Json::value_t::array))->empty();
  const Json& status = *TRY(part(json, "status", Json::value_t::object));
  for (const Json& container : *TRY(part(status, "containerStatuses", Json::value_t::array)))
    pod.statuses.push_back(TRY(container_status(container)));
  TRY(read_sidecars(spec, status, &pod));
  pod.observed_generation = TRY(integer(status, "observedGeneration"));
  pod.pending_resize = TRY(pending_resize(status));
  return pod;
}

Result<Status> status_of(const Json& json) {
  Status status;
  if (TRY(text(json, "kind")) != "Status") return error("not a Status");
  status.code = static_cast<int>(TRY(integer(json, "code")));
  status.reason = TRY(text(json, "reason"));
  status.message = TRY(text(json, "message"));
  const Json& details = *TRY(part(json, "details", Json::value_t::object));
  status.retry_after_seconds = TRY(integer(details, "retryAfterSeconds"));
  return status;
}

// Where the digest's "@" is; npos without one.
std::size_t at_of_digest(std::string_view image_id) {
  const auto at = image_id.rfind('@');
  return at != std::string_view::npos && image_id.substr(at + 1).starts_with("sha256:")
             ? at
             : std::string_view::npos;
}

}  // namespace

const ContainerStatus* Pod::status(std::string_view container) const {
  const auto found = std::ranges::find(statuses, container, &ContainerStatus::name);
  return found == statuses.end() ? nullptr : &*found;
}

const ContainerSpec* Pod::container(std::string_view container) const {
  const auto found = std::ranges::find(containers, container, &ContainerSpec::name);
  return found == containers.end() ? nullptr : &*found;
}

const ContainerSpec* Pod::pilot() const {
  if (const ContainerSpec* named = container(k_pilot_container)) return named;
  return containers.empty() ? nullptr : &containers.front();
}

Result<Pod> parse_pod(std::string_view document) {
  const auto json = parse(document);
  if (!json) return json.error().in("pod");
  return pod_of(json.value()).in("pod");
}

Result<Pod> pod_from(const Json& object) {
  if (!object.is_object()) return error("pod: not a JSON object");
  return pod_of(object).in("pod");
}

Result<Status> parse_status(std::string_view document) {
  const auto json = parse(document);
  if (!json) return json.error().in("status");
  return status_of(json.value()).in("status");
}

std::int64_t version_number(std::string_view resource_version) {
  std::int64_t number = 0;
  const auto* end = resource_version.data() + resource_version.size();
  const auto parsed = std::from_chars(resource_version.data(), end, number);
  return parsed.ptr == end ? number : 0;
}

Result<Status> status_from(const Json& object) {
  return status_of(object).in("status");
}

std::string image_patch(const ImageChange& change) {
  const std::string path = path_of(change.sidecar, change.place);
  Json patch = Json::array({{{"op", "test"}, {"path", path + "/name"}, {"value", change.container}},
                            {{"op", "test"}, {"path", path + "/image"}, {"value", change.before}},
                            {{"op", "replace"}, {"path", path + "/image"}, {"value", change.after}}});
  if (!change.version.empty())
    patch.push_back({{"op", "test"}, {"path", "/metadata/resourceVersion"}, {"value", change.version}});
  return json_text(patch);
}

std::optional<std::string> size_patch(const Pod& pod, const std::vector<SizeChange>& changes) {
  const auto quantities = [](const Amount& amount) {
    return Json{{"cpu", fmt::format("{}m", amount.cpu)}, {"memory", std::to_string(amount.memory)}};
  };
  Json patch = Json::array();
  patch.push_back({{"op", "test"}, {"path", "/metadata/resourceVersion"}, {"value", pod.resource_version}});
  for (const SizeChange& change : changes) {
    const ContainerSpec* spec = pod.container(change.container);
    if (spec == nullptr) return std::nullopt;
    const std::string path = path_of(spec->sidecar, spec->place);
    patch.push_back({{"op", "test"}, {"path", path + "/name"}, {"value", change.container}});
    const Json wanted = {{"requests", quantities(change.size.request)},
                         {"limits", quantities(change.size.limit)}};
    for (const auto& [group, amounts] : wanted.items())
      for (const auto& [name, value] : amounts.items())
        patch.push_back({{"op", "add"},
                         {"path", fmt::format("{}/resources/{}/{}", path, group, name)},
                         {"value", value}});
  }
  return json_text(patch);
}

std::string annotation_patch(std::string_view key, std::string_view value) {
  const Json patch = {{"metadata", {{"annotations", {{std::string(key), value}}}}}};
  return json_text(patch);
}

std::string digest_of(std::string_view image_id) {
  const auto at = at_of_digest(image_id);
  return at == std::string_view::npos ? std::string() : std::string(image_id.substr(at + 1));
}

std::string repository_of(std::string_view image_id) {
  const auto at = at_of_digest(image_id);
  if (at == std::string_view::npos) return {};
  const auto scheme = image_id.find("://");  // "docker-pullable://" of old kubelets
  const auto begin = scheme == std::string_view::npos ? 0 : scheme + 3;
  return std::string(image_id.substr(begin, at - begin));
}

}  // namespace glidepod::kube
