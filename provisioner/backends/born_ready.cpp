#include "provisioner/backends/born_ready.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/kube/pod.hpp"

namespace glidepod::provisioner {

using Json = nlohmann::json;

namespace {

// From 0 to less than 1, evenly for any names: of those that differ in their last letter only, FNV's first
// bits are alike (the steps after it are MurmurHash3's).
double chance_of(std::string_view name) {
  auto hash = stable_hash(name);
  hash = (hash ^ (hash >> 33U)) * 0xff51afd7ed558ccdu;
  hash = (hash ^ (hash >> 33U)) * 0xc4ceb9fe1a85ec53u;
  return static_cast<double>((hash ^ (hash >> 33U)) >> 11U) / static_cast<double>(1ULL << 53U);
}

}  // namespace

bool is_from(std::string_view image, const List& places) {
  const auto holds = [image](std::string_view place) {
    if (!image.starts_with(place)) return false;
    return image.size() == place.size() ||
           std::string_view("/:@").find(image[place.size()]) != std::string_view::npos;
  };
  return places.empty() || std::ranges::any_of(places, holds);
}

std::vector<std::string> births(const GroupDemand& demand, const MayBe& may_be, std::size_t containers,
                                std::string_view name) {
  std::vector<std::string> result(containers);
  std::int64_t known = 0;
  for (const auto& one : demand.images) known += one.idle;
  const auto all = static_cast<double>(std::max(demand.idle, known));
  if (known <= 0) return result;
  // Points at equal distances over all jobs, in the order of their images.
  const double first = chance_of(name);
  for (std::size_t i = 0; i < containers; ++i) {
    double at = (first + static_cast<double>(i)) / static_cast<double>(containers) * all;
    for (const auto& [image, idle] : demand.images) {
      if (at < static_cast<double>(idle)) {
        if (may_be(image)) result[i] = image;
        break;
      }
      at -= static_cast<double>(idle);
    }
  }
  return result;
}

bool give_births(Json& pod, const GroupDemand& demand, const MayBe& may_be) {
  auto& containers = pod["spec"]["containers"];
  const auto pilot = std::ranges::find_if(
      containers, [](const Json& c) { return c.value("name", "") == kube::k_pilot_container; });
  if (pilot == containers.end()) return false;
  std::vector<Json*> idle;
  for (auto& container : containers)
    if (container.value("name", "").starts_with("payload-") &&
        container.value("image", "") == pilot->value("image", ""))
      idle.push_back(&container);
  if (idle.size() < 2) return false;
  idle.erase(idle.begin());
  const auto images = births(demand, may_be, idle.size(), pod["metadata"].value("name", ""));
  for (std::size_t i = 0; i < idle.size(); ++i)
    if (!images[i].empty()) (*idle[i])["image"] = images[i];
  return std::ranges::any_of(images, [](const auto& image) { return !image.empty(); });
}

}  // namespace glidepod::provisioner
