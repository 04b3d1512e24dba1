#include "pilot-agent/image_rules.hpp"

#include "lib/base/text.hpp"
#include "lib/kube/image_reference.hpp"

namespace glidepod::agent {
namespace {

constexpr std::string_view k_variable = "{path}";

Result<std::string> full_name(std::string_view reference, std::string_view image) {
  const auto parsed = kube::ImageReference::parse(reference);
  if (!parsed) return error("image {}: {}", image, parsed.error().message());
  return parsed->full_name();
}

}  // namespace

Result<ImageRule> ImageRule::parse(std::string_view text) {
  const auto arrow = text.find("->");
  if (arrow == std::string_view::npos)
    return error("image rule '{}' is not of the form PATH/{{path}} -> NAME/{{path}}", text);
  const auto from = trim(text.substr(0, arrow));
  const auto to = trim(text.substr(arrow + 2));
  if (!from.starts_with('/') || !from.ends_with(k_variable) || !to.ends_with(k_variable))
    return error("image rule '{}': both sides must end with {{path}}, and the left one begin with /", text);
  return ImageRule{std::string(from.substr(0, from.size() - k_variable.size())),
                   std::string(to.substr(0, to.size() - k_variable.size()))};
}

Result<std::string> pod_image(std::string_view image, const std::vector<ImageRule>& rules) {
  constexpr std::string_view k_docker = "docker://";
  if (image.empty()) return error("no image given");
  if (image.starts_with(k_docker)) return full_name(image.substr(k_docker.size()), image);
  const auto scheme = image.find("://");
  if (scheme != std::string_view::npos)
    return error("image {}: {} is not supported here; an image must be in a registry: docker://NAME", image,
                 image.substr(0, scheme + 3));
  for (const ImageRule& rule : rules) {
    if (!image.starts_with(rule.prefix)) continue;
    auto path = image.substr(rule.prefix.size());
    while (path.ends_with('/')) path.remove_suffix(1);
    return full_name(rule.replacement + std::string(path), image);
  }
  if (image.starts_with('/') || image.starts_with('.') || image.ends_with(".sif"))
    return error(
        "image {}: image files and folders are not supported here; an image must be in a registry: "
        "docker://NAME",
        image);
  return full_name(image, image);
}

}  // namespace glidepod::agent
