#include "provisioner/backends/table.hpp"

#include <algorithm>
#include <array>

#include "provisioner/backends/kubernetes.hpp"
#include "provisioner/backends/lancium.hpp"

namespace glidepod::provisioner {
namespace {

Result<std::unique_ptr<Backend>> make_kubernetes(const BackendParts& parts) {
  auto& settings = parts.settings.kubernetes;
  *parts.client = TRY(kube::Client::create(parts.loop, TRY(parts.endpoint())));
  if (settings.name_space.empty() && parts.own_namespace) settings.name_space = TRY(parts.own_namespace());
  if (settings.name_space.empty()) return error("[k8s] namespace is not set");
  const auto* given = parts.pod_template.is_null() ? nullptr : &parts.pod_template;
  auto maker = TRY(PodMaker::create(settings, given).in(settings.pod_template));
  return std::unique_ptr<Backend>(
      std::make_unique<Kubernetes>(**parts.client, settings, std::move(maker), parts.mode));
}

Result<std::unique_ptr<Backend>> make_lancium(const BackendParts& parts) {
  return std::unique_ptr<Backend>(TRY(Lancium::create(parts.runner, parts.settings.lancium)));
}

void limit_lancium(Policy& policy, const Settings& settings) {
  policy.sightings_before_removal = settings.lancium.sightings_before_removal;
  policy.removals_per_cycle = settings.lancium.removals_per_cycle;
}

constexpr std::array k_kinds = {
    BackendKind{
        .name = "kubernetes",
        .settings_file = "osg_provisioner.conf",
        .pod_template = true,
        .name_space = CondorDemand::Namespace::matched,
        .pilots = [](const Settings& settings) -> const PilotSettings& { return settings.kubernetes; },
        .limit = [](Policy&, const Settings&) {},
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
  return {"pod.conf", std::string(kind.settings_file)};
}

}  // namespace glidepod::provisioner
