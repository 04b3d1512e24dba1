#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "lib/base/fd.hpp"

namespace glidepod::glue {

// What one of glue's own children has written into its pipe, one record at a time.
enum class Record : std::uint8_t {
  none,   // there is no record yet
  whole,  // a record was read
  end,    // the pipe's other end is closed
};
Record read_record(const Fd& pipe, void* record, std::size_t size);

template <typename T>
Record read_record(const Fd& pipe, T* record) {
  static_assert(std::is_trivially_copyable_v<T>);
  return read_record(pipe, record, sizeof *record);
}

}  // namespace glidepod::glue
