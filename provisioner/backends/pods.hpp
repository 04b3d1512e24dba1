#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "provisioner/decide/decide.hpp"
#include "provisioner/demand/contract.hpp"
#include "provisioner/demand/pilot_ad.hpp"

namespace glidepod::provisioner {

using Json = nlohmann::json;

// Makes the pods of groups: the template (or, without one, PRP's pod with the single container "htcondor")
// with what the settings say merged in.
class PodMaker {
 public:
  // Fails where the template is no pod or has no container.
  static Result<PodMaker> create(KubernetesSettings settings, const Json* pod_template);

  // The image that pilots get.
  const std::string& image() const { return image_; }
  // Jobs run in containers of their own, not in the pilot's.
  // Those of its pods; empty: they name none.
  std::set<std::string> priority_classes() const;
  // The resources that GPUs may be, beside nvidia.com/gpu (gpu_resources).
  std::set<std::string> devices() const;
  bool has_payloads() const { return payloads_ > 0; }
  // How many payload containers a pod of this group gets beyond the template's (`warm`).
  std::int64_t spares(const Group& group) const;
  // Why no pod gets any though they are wanted; empty: pods may.
  const std::string& no_spares() const { return no_spares_; }
  // From now on no pod gets any.
  void leave_out_spares(std::string why) { no_spares_ = std::move(why); }
  // The pilot is told of an image store, by the template or by envs_dict: jobs' images may be files.
  // Which image files its pilots take.
  ImageFiles image_files() const;
  // What its pilots' ads have beside HTCondor's own and ours: what the settings say, else what a pod's
  // environment shows. Not known where jobs run in the pilot's container, where that runs something else, or
  // where configuration that is not seen here is mounted.
  PilotAttributes pilot_attributes() const;
  // The pod as JSON, ready to be created. Fails where a volume would have the name of one of the template's.
  Result<Json> make(const Group& group, const std::string& name) const;

 private:
  std::string pilot_variable(std::string_view name) const;
  PodMaker(KubernetesSettings settings, Json pod, bool from_template)
      : settings_(std::move(settings)), template_(std::move(pod)), from_template_(from_template) {}
  Json& pilot(Json& pod) const { return pod["spec"]["containers"][pilot_]; }
  const std::string& priority_class(bool gpus) const;
  std::string why_no_spares() const;
  void set_images(Json& pod) const;
  void set_metadata(Json& pod, const Group& group) const;
  void set_environment(Json& pod, const Group& group) const;
  Result<std::string> gpu_resource(const Group& group) const;
  Result<void> set_resources(Json& pod, const Group& group) const;
  void close_devices(Json& pod) const;
  void set_placement(Json& pod, const Group& group) const;
  Result<void> set_volumes(Json& pod, const Group& group) const;

  KubernetesSettings settings_;
  Json template_;
  bool from_template_;
  std::size_t pilot_ = 0;
  std::int64_t payloads_ = 0;  // containers named payload-N of the template; 0: jobs run in the pilot's
  std::string no_spares_;      // why pods get no more of these
  std::string image_;
  // A device belongs to one container, and so does what it requests where that is all it may use: pods with
  // GPUs and Guaranteed ones have one payload container. Set where the template has more.
  std::shared_ptr<const PodMaker> with_one_;
};

// What of a group a label cannot hold: the annotation that does, and the pilot's variable from which its slot
// says it (images/pilot/config.d/80-identity.config).
struct GroupText {
  const char* annotation;
  const char* variable;
  SharedText Group::*field;
};
inline constexpr GroupText k_group_texts[] = {
    {"glidepod.io/disk-volumes", "GLIDEPOD_DISK_VOLUMES", &Group::disk_volumes},
    {"glidepod.io/gpu-types", "GLIDEPOD_GPU_TYPES", &Group::gpu_types},
    {"glidepod.io/labels", "GLIDEPOD_LABELS", &Group::labels},
};

// The annotation that says how a pod was made.
inline constexpr const char* k_made_as = "glidepod.io/made-as";

// The annotation by which a pod is drained: why. Pilots read it as a file (manifests/*/pilot-pod.*).
inline constexpr const char* k_drained = "glidepod.io/drained";
inline constexpr std::size_t k_longest_drained = 200;

// The same name for the same cycle, group and number: a creation that is tried again makes no second pod. At
// most 63 characters, as a host name must be.
std::string pod_name(std::string_view app_name, const Group& group, Time cycle, std::int64_t number);

// The group that a pod was made for, from its labels and annotations; pods that PRP made are known as well.
Result<Group> group_of_pod(const Json& pod);

// What the pod requests in all.
Result<Resources> resources_of_pod(const Json& pod);

}  // namespace glidepod::provisioner
