#include "lib/kube/pod_images.hpp"

#include <algorithm>

#include "lib/kube/image_reference.hpp"
#include "lib/kube/tested_change.hpp"

namespace glidepod::kube {

class PodImages::Change final : public TestedChange {
 public:
  Change(PodImages& images, Wanted wanted, SteadyTime deadline, PodHandler handler)
      : TestedChange(deadline, std::move(handler)), images_(images), wanted_(std::move(wanted)) {
    if (images_.containers_.empty())
      look();
    else
      patch();
  }

 private:
  void patch() {
    const auto& all = images_.containers_;
    const auto found = std::ranges::find(all, wanted_.container, &ContainerSpec::name);
    if (found == all.end())
      return finish(error("the pod {} has no container {}", images_.pod_.name, wanted_.container));
    change_ = {.place = found->place,
               .container = wanted_.container,
               .before = found->image,
               .after = wanted_.image,
               .sidecar = found->sidecar};
    if (images_.once_[wanted_.container] != found->image) change_.version = images_.version_;
    step_ = images_.client_.patch_image(images_.pod_, change_, deadline_,
                                        [this](Result<Pod> pod) { patched(std::move(pod)); });
  }

  void patched(Result<Pod> pod) {
    if (pod) {
      images_.saw(*pod);
      const ContainerSpec* spec = pod->container(wanted_.container);
      // Only the tag makes the name unique.
      if (wanted_.once && spec != nullptr && keeps_tag(wanted_.image, spec->image))
        images_.once_[wanted_.container] = spec->image;
      return finish(std::move(pod));
    }
    // The API refuses the image, or the container had another one.
    not_changed(pod.error());
  }

  void look() override {
    step_ = images_.client_.get(images_.pod_, deadline_, [this](const Result<Pod>& pod) { looked(pod); });
  }

  void looked(const Result<Pod>& pod) {
    if (pod) {
      images_.saw(*pod);
      const ContainerSpec* spec = pod->container(wanted_.container);
      const bool same_version = change_.version.empty() || change_.version == pod->resource_version;
      // Before the first attempt that is no image's name.
      if (same_version && spec != nullptr && spec->image == change_.before) return fail(refusal_);
      if (std::chrono::steady_clock::now() < deadline_) return patch();
    }
    // The pod is or may be another one than the one that was seen.
    if (refused()) in_doubt();
    fail(pod ? refusal_ : Failure::of(pod.error()));
  }

  PodImages& images_;
  const Wanted wanted_;
  ImageChange change_;
};

void PodImages::saw(const Pod& pod) {
  const auto known = version_number(version_), newer = version_number(pod.resource_version);
  if (newer != 0 && newer < known) return;
  version_ = pod.resource_version;
  containers_ = pod.containers;
}

std::unique_ptr<Client::Operation> PodImages::change(Wanted wanted, SteadyTime deadline, PodHandler handler) {
  return std::make_unique<Change>(*this, std::move(wanted), deadline, std::move(handler));
}

}  // namespace glidepod::kube
