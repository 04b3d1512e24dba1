#include "provisioner/demand/images.hpp"

#include <algorithm>

#include "lib/condor/job_ad.hpp"
#include "lib/kube/image_reference.hpp"

namespace glidepod::provisioner {

namespace {

constexpr std::string_view k_registry = "docker://";
constexpr std::size_t k_longest = 512;

}  // namespace

std::string image_of(const condor::Ad& ad) {
  const bool singularity = ad.evaluate("SingularityImage").is(condor::Value::Type::string);
  const auto said = condor::string_literal(ad.written(singularity ? "SingularityImage" : "ContainerImage"));
  if (!said || !said->starts_with(k_registry) || said->size() > k_longest) return {};
  const auto reference = kube::ImageReference::parse(std::string_view(*said).substr(k_registry.size()));
  return reference ? reference->full_name() : std::string();
}

void ImageTally::add(const std::string& owner, const std::string& image, std::int64_t jobs) {
  if (jobs <= 0) return;
  auto& counts = owners_[owner];
  if (const auto found = counts.find(image); found != counts.end() || counts.size() < k_most_images) {
    counts[image] += jobs;
    return;
  }
  // No place is free: all images lose what the least has, and so does this one.
  const auto of = [](const auto& entry) { return entry.second; };
  const auto least = std::min(jobs, of(*std::ranges::min_element(counts, {}, of)));
  for (auto& entry : counts) entry.second -= least;
  std::erase_if(counts, [](const auto& entry) { return entry.second == 0; });
  if (jobs > least) counts[image] = jobs - least;
}

void ImageTally::add(const ImageTally& other) {
  for (const auto& [owner, counts] : other.owners_)
    for (const auto& [image, jobs] : counts) add(owner, image, jobs);
}

std::vector<ImageDemand> ImageTally::most_wanted() const {
  std::map<std::string, std::int64_t> all;
  for (const auto& [owner, counts] : owners_)
    for (const auto& [image, jobs] : counts) all[image] += jobs;
  std::vector<ImageDemand> result;
  result.reserve(all.size());
  for (const auto& [image, idle] : all) result.push_back({image, idle});
  // So far they are in the order of their names, which equal counts keep.
  std::ranges::stable_sort(result, std::greater<>(), &ImageDemand::idle);
  if (result.size() > k_most_images) result.resize(k_most_images);
  return result;
}

}  // namespace glidepod::provisioner
