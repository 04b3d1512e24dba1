// What podhost reads from its clients: pods and patches of them.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "podhost/api/access.hpp"
#include "podhost/api/json_input.hpp"
#include "podhost/api/patch.hpp"
#include "podhost/spec/pod_spec.hpp"

using namespace glidepod::podhost;

namespace {

const SpecRules k_rules{"node", false};

Json base_pod() {
  Json pod = Json::parse(R"({"apiVersion": "v1", "kind": "Pod",
    "metadata": {"name": "p", "namespace": "ns", "uid": "u", "resourceVersion": "1", "labels": {"a": "b"}},
    "spec": {"volumes": [{"name": "v", "emptyDir": {}}],
             "containers": [{"name": "c", "image": "i:1", "command": ["x"]}, {"name": "d", "image": "j:1"}]},
    "status": {"phase": "Pending"}})");
  set_defaults(pod, k_rules);
  return pod;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Json k_pod = base_pod();
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  static constexpr const char* k_types[] = {"application/json-patch+json",
                                            "application/strategic-merge-patch+json",
                                            "application/merge-patch+json"};
  if (data[0] % 4 < 3) {
    auto patched = apply_patch(k_pod, k_types[data[0] % 4], text);
    if (!patched) return 0;
    const auto checked = check_update(k_pod, std::move(*patched));
    if (!checked) return 0;
    // What was let through must still be a pod, and differ in nothing but what may change.
    if (!parse_pod(*checked, k_rules)) std::abort();
    if (checked->at("spec").at("containers").size() != 2) std::abort();
    static_cast<void>(refuse_pod_change(k_pod, *checked));
    return 0;
  }
  auto pod = parse_json(text);
  if (!pod || !pod->is_object()) return 0;
  set_defaults(*pod, k_rules);
  const auto parsed = parse_pod(*pod, k_rules);
  if (parsed && parsed->spec.containers.empty()) std::abort();
  return 0;
}
