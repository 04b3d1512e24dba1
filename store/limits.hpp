#pragma once

#include <cstddef>
#include <cstdint>

namespace glidepod::store {

// What an image file may cost. An image beyond one of these is refused, and the Error says which it was.
struct Limits {
  std::uint64_t content = std::uint64_t{50} << 30;  // bytes of all files together
  // Bytes of content for each byte of the file, beyond the first `free_content`: what a bomb has more of.
  std::uint64_t ratio = 64;
  std::uint64_t free_content = std::uint64_t{1} << 30;
  std::uint64_t entries = 2'000'000;
  std::uint64_t layer = std::uint64_t{128}
                        << 20;      // bytes of the first layer; each next one has twice as many
  std::size_t depth = 100;          // folders in each other
  std::size_t path = 4095;          // bytes of a name with all its folders
  std::size_t attributes = 65'536;  // bytes of one entry's extended attributes
  std::uint64_t memory = std::uint64_t{256} << 20;  // address space of the process that reads it
  std::uint64_t processor_seconds = 1800;           // of that process
};

}  // namespace glidepod::store
