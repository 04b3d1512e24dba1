#include "lib/condor/image_forms.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace glidepod::condor {
namespace {

constexpr std::string_view k_suffix = ".sif";
// What Apptainer, and not HTCondor, would fetch; and what is there without being fetched.
constexpr std::array<std::string_view, 6> k_elsewhere = {"docker://", "oras://",          "library://",
                                                         "shub://",   "docker-daemon://", "/cvmfs/"};
constexpr std::string_view k_cvmfs = "/cvmfs/", k_artifact = "oras://";

}  // namespace

ImageForm image_form(std::string_view image) {
  if (image.starts_with(k_artifact)) return ImageForm::artifact;
  const bool elsewhere = std::ranges::any_of(
      k_elsewhere, [image](std::string_view prefix) { return image.starts_with(prefix); });
  if (elsewhere || image_file_name(image).empty()) return ImageForm::registry;
  if (image.ends_with(k_suffix)) return ImageForm::file;
  // With a colon it is the name of an image in a registry, or a URL, and no folder comes by that.
  return image.find(':') == std::string_view::npos ? ImageForm::folder : ImageForm::registry;
}

std::string image_file_name(std::string_view image) {
  while (image.ends_with('/')) image.remove_suffix(1);
  const auto name = image.substr(image.rfind('/') + 1);
  if (name == "." || name == ".." || name.find('\0') != std::string_view::npos) return {};
  return std::string(name);
}

std::string image_file_pattern() {
  std::string prefixes;
  for (const auto prefix : k_elsewhere) prefixes.append(prefixes.empty() ? "" : "|").append(prefix);
  return fmt::format("^(?!{}).*[.]sif$|^(?!{})[^:]+$|^{}", prefixes, k_cvmfs, k_artifact);
}

}  // namespace glidepod::condor
