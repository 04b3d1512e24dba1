#include "provisioner/backends/pod_volumes.hpp"

#include <algorithm>

namespace glidepod::provisioner {

namespace {

// A volume's name, unlike a claim's, has no dots.
std::string volume_name(std::string name) {
  std::replace(name.begin(), name.end(), '.', '-');
  return name;
}

constexpr const char* k_shm = "/dev/shm";

// The name of the volume that the container has there; empty: none.
std::string volume_at(const nlohmann::json& container, const std::string& path) {
  for (const auto& mount : container.value("volumeMounts", nlohmann::json::array()))
    if (mount.value("mountPath", "") == path) return mount.value("name", "");
  return {};
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

PodVolume image_store_volume() {
  const char* name = "image-store";
  constexpr int k_roots_alone = 0400;
  const nlohmann::json token = {{"path", "token"}, {"audience", name}, {"expirationSeconds", 3600}};
  return {{{"name", name},
           {"projected",
            {{"defaultMode", k_roots_alone},
             {"sources",
              {{{"serviceAccountToken", token}}, {{"configMap", {{"name", "glidepod-image-store-ca"}}}}}}}}},
          {{"name", name}, {"mountPath", k_image_store_folder}, {"readOnly", true}},
          false};
}

Result<void> give_own_shm(nlohmann::json& spec, nlohmann::json& container) {
  const std::string own = container["name"];
  const nlohmann::json memory = {{"medium", "Memory"},
                                 {"sizeLimit", container["resources"]["limits"]["memory"]}};
  auto& volumes = spec["volumes"];
  if (!volumes.is_array()) volumes = nlohmann::json::array();
  const auto find = [&volumes](const std::string& name) {
    return std::find_if(volumes.begin(), volumes.end(),
                        [&](const nlohmann::json& volume) { return volume.value("name", "") == name; });
  };
  const std::string there = volume_at(container, k_shm);
  if (there.empty()) {
    const std::string name = own + "-shm";
    if (find(name) != volumes.end())
      return error("pod template: volume '{}' is not the {} of {}", name, k_shm, own);
    volumes.push_back({{"name", name}, {"emptyDir", memory}});
    container["volumeMounts"].push_back({{"name", name}, {"mountPath", k_shm}});
    return {};
  }
  for (const auto& other : spec["containers"])
    if (other["name"] != own && volume_at(other, k_shm) == there)
      return error("pod template: {} and {} have one {}, volume '{}': give each its own", own,
                   other["name"].get<std::string>(), k_shm, there);
  if (const auto volume = find(there); volume != volumes.end() && volume->contains("emptyDir"))
    (*volume)["emptyDir"] = memory;
  return {};
}

void drop_own_shm(nlohmann::json& spec, const nlohmann::json& container) {
  const std::string name = volume_at(container, k_shm);
  if (!spec.contains("volumes") || name.empty()) return;
  auto& volumes = spec["volumes"];
  for (auto volume = volumes.begin(); volume != volumes.end(); ++volume)
    if (volume->value("name", "") == name) {
      volumes.erase(volume);
      return;
    }
}

}  // namespace glidepod::provisioner
