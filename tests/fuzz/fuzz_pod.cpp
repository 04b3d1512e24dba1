// What the API server, or whoever answers in its place, may say of a pod.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lib/condor/job_ad.hpp"
#include "lib/kube/image_reference.hpp"
#include "lib/kube/pod.hpp"
#include "lib/kube/watch_event.hpp"

using namespace glidepod;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)kube::parse_pod(text);
  (void)kube::parse_watch_event(text);
  (void)kube::parse_status(text);
  const std::string name(text);
  (void)kube::image_patch({0, name, name, name, name});
  (void)kube::digest_of(text);
  (void)kube::repository_of(text);
  if (const auto reference = kube::ImageReference::parse(text)) (void)reference->full_name();
  (void)condor::parse_job_ad(text);
  return 0;
}
