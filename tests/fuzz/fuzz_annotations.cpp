// What pilot and provisioner read in each other's annotations. A pilot whose token is stolen writes what it
// likes, and without manifests/policy so does a pilot to another.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "lib/kube/image_reference.hpp"
#include "lib/kube/pulls.hpp"

using namespace glidepod;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

// What is believed once is, written again, believed as it was.
template <typename List, typename Read, typename Write>
void try_list(const List& list, const Read& read, const Write& write) {
  require(list.size() <= kube::k_most_wanted);
  require(read(write(list)) == list);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto wanted = kube::read_wanted(text);
  try_list(wanted, kube::read_wanted, kube::wanted_text);
  for (const auto& each : wanted) require(kube::ImageReference::parse(each.image).ok());
  const auto pulled = kube::read_pulled(text);
  try_list(pulled, kube::read_pulled, kube::pulled_text);
  for (const auto& each : pulled) require(kube::ImageReference::parse(each.wanted.image).ok());
  const auto likely = kube::read_likely(text);
  try_list(likely, kube::read_likely, kube::likely_text);
  for (const auto& each : likely) require(each.share > 0 && each.share <= 1000);
  return 0;
}
