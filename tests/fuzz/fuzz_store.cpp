// An image file, which a user brings.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "store/layer.hpp"

using namespace glidepod;

// The process that reads images has a limit of memory; here a table that says it is huge is not had either.
extern "C" const char* __asan_default_options() {  // NOLINT(bugprone-reserved-identifier): ASan's name
  return "allocator_may_return_null=1:max_allocation_size_mb=256";
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Fd file(::memfd_create("image", MFD_CLOEXEC));
  if (!file || ::write(file.get(), data, size) != static_cast<ssize_t>(size)) return 0;
  store::Limits limits;
  limits.entries = 500;
  limits.content = std::uint64_t{4} << 20;
  limits.layer = 4096;
  (void)store::write_layers(
      file, limits, [](std::string_view) -> Result<void> { return {}; },
      [](const store::LayerEnd&) -> Result<void> { return {}; });
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  (void)store::Layer::from_line(line);
  (void)store::LayerEnd::from_line(line);
  return 0;
}
