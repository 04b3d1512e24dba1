#include "provisioner/backends/pod_volumes.hpp"

#include <algorithm>

namespace glidepod::provisioner {

namespace {

// A volume's name, unlike a claim's, has no dots.
std::string volume_name(std::string name) {
  std::replace(name.begin(), name.end(), '.', '-');
  return name;
}

}  // namespace

PodVolume claim_volume(const std::string& claim, std::string_view path) {
  PodVolume result{
      {{"name", volume_name(claim)}, {"persistentVolumeClaim", {{"claimName", claim}}}}, {}, true};
  result.mount["name"] = volume_name(claim);
  for (; path.starts_with('!') || path.starts_with('#'); path.remove_prefix(1)) {
    if (path.front() == '!') result.mount["readOnly"] = true;
    if (path.front() == '#') result.mount["mountPropagation"] = "HostToContainer";
  }
  result.mount["mountPath"] = path;
  return result;
}

PodVolume config_volume(const std::string& config_map, const std::string& path) {
  const auto file = path.substr(path.rfind('/') + 1);
  return {{{"name", volume_name(config_map)},
           {"configMap", {{"name", config_map}, {"items", {{{"key", file}, {"path", file}}}}}}},
          {{"name", volume_name(config_map)}, {"mountPath", path}, {"subPath", file}},
          false};
}

PodVolume token_volume(const std::string& secret) {
  const auto* file = "prp-wn.token";
  return {{{"name", "configpasswd"},
           {"secret", {{"secretName", secret}, {"items", {{{"key", file}, {"path", file}}}}}}},
          {{"name", "configpasswd"},
           {"mountPath", std::string("/etc/condor/tokens.d/") + file},
           {"subPath", file},
           {"readOnly", true}},
          false};
}

}  // namespace glidepod::provisioner
