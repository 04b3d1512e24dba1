#include "provisioner/service/parts.hpp"

#include <unistd.h>

#include <algorithm>

#include "lib/base/file.hpp"
#include "lib/base/json.hpp"
#include "lib/base/text.hpp"
#include "provisioner/decide/places.hpp"
#include "provisioner/service/drain_list.hpp"
#include "provisioner/service/memory.hpp"

namespace glidepod::provisioner {

namespace {

constexpr std::size_t k_longest_status = std::size_t{128} << 20;  // 100,000 pods take some 50 MiB
constexpr std::size_t k_longest_file = std::size_t{4} << 20;
constexpr Seconds k_least_offer{1200};   // for so long at least an offline ad stays in the collector
constexpr Seconds k_least_creating{60};  // for so long at least a plan's pods are made

Policy make_policy(const Settings& settings, const PilotSettings& pilots, const std::string& image) {
  Policy policy;
  policy.image = image;
  policy.max_pods_per_cluster = pilots.max_pods_per_cluster;
  policy.max_submit_pods_per_cluster = pilots.max_submit_pods_per_cluster;
  policy.settings = settings.policy;
  return policy;
}

}  // namespace

std::uint64_t fingerprint_of(const List& files) {
  std::string all;
  for (const auto& file : files) {
    const auto text = read_file(file, k_longest_file);
    all += text ? fmt::format("{:x},", stable_hash(text.value())) : "none,";
  }
  return stable_hash(all);
}

Result<Configuration> read_configuration(const ServiceOptions& options) {
  Configuration result;
  List existing;
  if (options.files.empty()) {
    result.files = default_files(*options.backend);
    for (const auto& file : result.files)
      if (::access(file.c_str(), F_OK) == 0) existing.push_back(file);
  } else {
    result.files = existing = options.files;
  }
  result.loaded = TRY(load_settings(existing));
  auto& settings = result.loaded.settings.kubernetes;
  if (options.backend->pod_template && !settings.pod_template.empty()) {
    const auto text = TRY(read_file(settings.pod_template, k_longest_file));
    result.pod_template = json_from(text);
    if (result.pod_template.is_discarded()) return error("{} is no JSON", settings.pod_template);
    result.files.push_back(settings.pod_template);
    auto& written = result.loaded.written;
    written.push_back(fmt::format("[k8s] pod_template holds {:x}", stable_hash(text)));
    std::sort(written.begin(), written.end());
  }
  // A change between the readings above and this one is noticed with the next change only; inotify tells of
  // it.
  result.fingerprint = fingerprint_of(result.files);
  return result;
}

Result<kube::Endpoint> endpoint_of(const ServiceOptions& options) {
  if (!options.api.url.empty() || !options.api.unix_socket.empty()) return options.api;
  return kube::endpoint_in_pod(k_service_account, environ);
}

Result<std::string> own_namespace() {
  const std::string name(trim(TRY(read_file(std::string(k_service_account) + "/namespace"))));
  return name;
}

Result<LeaseOptions> lease_of(const ServiceOptions& options) {
  LeaseOptions lease;
  const auto slash = options.lease.find('/');
  lease.name = slash == std::string::npos ? options.lease : options.lease.substr(slash + 1);
  constexpr const char* k_no_namespace =
      "--lease NAME means this pod's own namespace, which cannot be told; give --lease NAMESPACE/NAME";
  lease.name_space =
      slash == std::string::npos ? TRY(own_namespace().in(k_no_namespace)) : options.lease.substr(0, slash);
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  lease.identity = fmt::format("{}_{}", host, random_hex(4));
  return lease;
}

nlohmann::json read_status(const std::string& file) {
  const auto text = file.empty() ? Result<std::string>(error("none")) : read_file(file, k_longest_status);
  auto status = text ? json_from(text.value()) : nlohmann::json();
  return status.is_object() ? status : nlohmann::json();
}

Result<nlohmann::json> read_lease(Loop& loop, const Parts& parts, const LeaseOptions& named) {
  Result<nlohmann::json> result = nlohmann::json();
  const auto call =
      parts.client->call({.path = fmt::format("/apis/coordination.k8s.io/v1/namespaces/{}/leases/{}",
                                              named.name_space, named.name)},
                         [&](const Result<std::string>& answer) {
                           if (answer)
                             result = json_from(answer.value());
                           else if (kube::Failure::of(answer.error()).status != 404)
                             result = answer.error().in("the lease");
                           loop.stop();
                         });
  TRY(loop.run());
  return result;
}

Result<nlohmann::json> leaders_memory(Loop& loop, const Parts& parts, const ServiceOptions& options) {
  if (options.lease.empty() || !parts.client) {
    const auto status = read_status(parts.settings.policy.status_file);
    return status.is_object() ? status.value("memory", nlohmann::json()) : nlohmann::json();
  }
  return memory_in(TRY(read_lease(loop, parts, TRY(lease_of(options)))));
}

Result<DrainList> leaders_drained(Loop& loop, const Parts& parts, const ServiceOptions& options) {
  if (options.lease.empty() || !parts.client) return DrainList();
  return drained_in(TRY(read_lease(loop, parts, TRY(lease_of(options)))));
}

Result<std::unique_ptr<Parts>> Parts::make(Loop& loop, const ServiceOptions& options,
                                           const Configuration& configuration, PodFeed::Mode mode,
                                           kube::Client::Observer observer) {
  auto parts = std::make_unique<Parts>(loop);
  auto& settings = parts->settings = configuration.loaded.settings;
  const bool inside = options.api.url.empty() && options.api.unix_socket.empty();
  parts->backend = TRY(options.backend->make(
      {.loop = loop,
       .runner = parts->runner,
       .settings = settings,
       .pod_template = configuration.pod_template,
       .mode = mode,
       .endpoint = [&options] { return endpoint_of(options); },
       .own_namespace = inside ? std::function<Result<std::string>()>(own_namespace) : nullptr,
       .client = &parts->client,
       .observer = observer}));
  if (parts->client) parts->client->observe(std::move(observer));
  const PilotSettings& pilots = options.backend->pilots(settings);
  auto policy = make_policy(settings, pilots, parts->backend->image());
  policy.finished_ttl = settings.kubernetes.job_ttl;
  policy.least_fill = settings.kubernetes.least_fill;
  set_places(policy, parts->backend->places());
  options.backend->limit(policy, settings);
  parts->demand = std::make_unique<CondorDemand>(parts->runner, settings.htcondor, settings.policy,
                                                 settings.kubernetes.name_space, options.backend->name_space,
                                                 joined(parts->backend->jobs_taken()));
  parts->demand->set_pilots(parts->backend->pilot_attributes());
  DemandSource* demand = parts->demand.get();
  if (settings.htcondor.demand != DemandBy::query) {
    // Others make groups of their own of what the query finds.
    if (!options.backend->pod_template)
      return error("[htcondor] demand: must be query with --backend {}", options.backend->name);
    parts->offline = std::make_unique<OfflineDemand>(
        *demand, parts->runner, settings.htcondor,
        OfflineDemand::Settings{
            parts->backend->slot_constraint(), pilots.max_pods_per_cluster,
            std::max(10 * settings.sleep_time, k_least_offer),
            settings.htcondor.demand == DemandBy::offline ? Offering::decides : Offering::told,
            settings.htcondor.startd_identity_regexp});
    demand = parts->offline.get();
  }
  parts->cycle = std::make_unique<Cycle>(*demand, parts->runner, *parts->backend, settings.htcondor,
                                         pilots.app_name, std::move(policy));
  parts->cycle->create_within(std::max(settings.sleep_time, k_least_creating));
  return parts;
}

}  // namespace glidepod::provisioner
