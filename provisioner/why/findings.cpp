#include "provisioner/why/findings.hpp"

#include <algorithm>

namespace glidepod::provisioner {

namespace {

// A status is a file: of another version, or nonsense, it is as good as none.
std::vector<Finding> of_pods_with_any_status(const Scene& scene) {
  try {
    return of_pods(scene);
  } catch (const nlohmann::json::exception&) {
    auto without = scene;
    without.status = nullptr;
    return of_pods(without);
  }
}

}  // namespace

std::string_view to_string(Finding::Weight weight) {
  switch (weight) {
    case Finding::Weight::stops:
      return "stops";
    case Finding::Weight::waits:
      return "waits";
    case Finding::Weight::note:
      return "note";
  }
  return "?";
}

std::string_view to_string(Finding::Who who) {
  switch (who) {
    case Finding::Who::nobody:
      return "nobody";
    case Finding::Who::owner:
      return "the job's owner";
    case Finding::Who::pool_operator:
      return "the pool's operator";
    case Finding::Who::site_admin:
      return "the site's admin";
  }
  return "?";
}

std::vector<Finding> findings(const Scene& scene) {
  auto result = of_job(scene);
  const bool idle =
      scene.job.where == JobLook::Where::queue && scene.job.ad.evaluate("JobStatus").integer == 1;
  const auto stops = [](const Finding& finding) { return finding.weight == Finding::Weight::stops; };
  if (idle && std::ranges::none_of(result, stops)) {
    auto more = of_pods_with_any_status(scene);
    // Requirements that are told as a reason are not told as a note again.
    const auto unmet = [&stops](const Finding& finding) {
      return finding.key == "requirements" && stops(finding);
    };
    if (std::ranges::any_of(more, unmet))
      std::erase_if(result, [](const Finding& finding) { return finding.key == "requirements"; });
    std::ranges::move(more, std::back_inserter(result));
  }
  std::ranges::stable_sort(result, {}, &Finding::weight);
  return result;
}

}  // namespace glidepod::provisioner
