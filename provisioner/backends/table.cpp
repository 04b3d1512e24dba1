#include "provisioner/backends/table.hpp"

#include <algorithm>
#include <array>

#include "provisioner/backends/kubernetes.hpp"
#include "provisioner/backends/lancium.hpp"
#include "provisioner/backends/places.hpp"
#include "provisioner/demand/name_space.hpp"

namespace glidepod::provisioner {
namespace {

Result<std::unique_ptr<Kubernetes>> make_place(const BackendParts& parts, kube::Client& client,
                                               KubernetesSettings& settings) {
  if (settings.name_space.empty() && parts.own_namespace) settings.name_space = TRY(parts.own_namespace());
  if (settings.name_space.empty()) return error("[k8s] namespace is not set");
  const auto* given = parts.pod_template.is_null() ? nullptr : &parts.pod_template;
  auto maker = TRY(PodMaker::create(settings, given).in(settings.pod_template));
  return std::make_unique<Kubernetes>(client, settings, std::move(maker), parts.mode);
}

// What a place does not say itself is as for the only one.
Result<kube::Endpoint> endpoint_of(const BackendParts& parts, const KubernetesSettings& settings) {
  auto endpoint =
      settings.server.empty() ? TRY(parts.endpoint()) : kube::Endpoint{settings.server, {}, {}, {}};
  if (!settings.token_file.empty()) endpoint.token_file = settings.token_file;
  if (!settings.ca_file.empty()) endpoint.ca_file = settings.ca_file;
  return endpoint;
}

// Slots tell their places apart by namespace and domain, and jobs ask for no more than one namespace.
Result<void> check_places(const Settings& settings) {
  const auto& all = settings.places;
  const bool matched = settings.htcondor.force_namespace_matching != NamespaceMatching::no ||
                       settings.kubernetes.pilots_matching != NamespaceMatching::no;
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const bool same = all[i].name_space == all[j].name_space;
      if (same && all[i].domain == all[j].domain)
        return error(
            "[k8s:{}] and [k8s:{}] have the same namespace and k8s_domain, by which their slots are told "
            "apart",
            all[j].place, all[i].place);
      if (!same && matched)
        return error(
            "[k8s:{}] and [k8s:{}] have two namespaces, of which a job asks for one: that takes "
            "force_k8s_namespace_matching=no in [htcondor] and [k8s]",
            all[j].place, all[i].place);
    }
  return {};
}

Result<std::unique_ptr<Backend>> make_places(const BackendParts& parts) {
  std::vector<Places::Place> places;
  for (auto& settings : parts.settings.places) {
    const auto section = fmt::format("[k8s:{}]", settings.place);
    auto client = TRY(kube::Client::create(parts.loop, TRY(endpoint_of(parts, settings).in(section))));
    Places::Place place{.policy = {.name = settings.place,
                                   .image = {},
                                   .weight = settings.weight,
                                   .max_pods_per_cluster = settings.max_pods_per_cluster,
                                   .max_submit_pods_per_cluster = settings.max_submit_pods_per_cluster,
                                   .max_pods = settings.max_pods},
                        .name_space = {},
                        .domain = settings.domain,
                        .client = std::move(client),
                        .backend = nullptr};
    if (parts.observer) place.client->observe(parts.observer);
    place.backend = TRY(make_place(parts, *place.client, settings).in(section));
    place.name_space = settings.name_space;
    place.policy.image = place.backend->image();
    places.push_back(std::move(place));
  }
  TRY(check_places(parts.settings));
  // Jobs ask for the one namespace that all have, where they ask for one.
  parts.settings.kubernetes.name_space = parts.settings.places.front().name_space;
  // The lease is where this runs.
  if (const auto own = parts.endpoint()) *parts.client = TRY(kube::Client::create(parts.loop, own.value()));
  return std::unique_ptr<Backend>(std::make_unique<Places>(parts.loop, std::move(places)));
}

Result<std::unique_ptr<Backend>> make_kubernetes(const BackendParts& parts) {
  if (!parts.settings.places.empty()) return make_places(parts);
  *parts.client = TRY(kube::Client::create(parts.loop, TRY(parts.endpoint())));
  return std::unique_ptr<Backend>(TRY(make_place(parts, **parts.client, parts.settings.kubernetes)));
}

Result<std::unique_ptr<Backend>> make_lancium(const BackendParts& parts) {
  return std::unique_ptr<Backend>(TRY(Lancium::create(parts.runner, parts.settings.lancium)));
}

void limit_lancium(Policy& policy, const Settings& settings) {
  policy.sightings_before_removal = settings.lancium.sightings_before_removal;
  policy.removals_per_cycle = settings.lancium.removals_per_cycle;
}

// Pods of the largest namespaces end by hundreds in a minute.
constexpr std::int64_t k_most_removals = 1000;

constexpr std::array k_kinds = {
    BackendKind{
        .name = "kubernetes",
        .settings_file = "osg_provisioner.conf",
        .pod_template = true,
        .name_space = CondorDemand::Namespace::matched,
        .pilots = [](const Settings& settings) -> const PilotSettings& { return settings.kubernetes; },
        .limit = [](Policy& policy, const Settings&) { policy.removals_per_cycle = k_most_removals; },
        .make = make_kubernetes,
    },
    BackendKind{
        .name = "lancium",
        .settings_file = "lancium_provisioner.conf",
        .pod_template = false,
        .name_space = CondorDemand::Namespace::ignored,
        .pilots = [](const Settings& settings) -> const PilotSettings& { return settings.lancium; },
        .limit = limit_lancium,
        .make = make_lancium,
    },
};

}  // namespace

std::span<const BackendKind> backend_kinds() {
  return k_kinds;
}

const BackendKind* find_backend(std::string_view name) {
  const auto found = std::ranges::find(k_kinds, name, &BackendKind::name);
  return found == k_kinds.end() ? nullptr : &*found;
}

List default_files(const BackendKind& kind) {
  return {"pod.conf", std::string(kind.settings_file), "provisioner.conf", "site.conf"};
}

}  // namespace glidepod::provisioner
