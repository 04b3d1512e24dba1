#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "lib/base/fd.hpp"
#include "lib/base/result.hpp"

namespace glidepod {

// open(2), always close-on-exec.
Result<Fd> open_file(const std::string& path, int flags, unsigned mode = 0);

// Reads a whole file. A file longer than limit bytes is an Error.
Result<std::string> read_file(const std::string& path, std::size_t limit = std::size_t{16} << 20);
Result<std::string> read_all(const Fd& fd, std::string_view name, std::size_t limit);

Result<void> write_all(const Fd& fd, std::string_view data);

// Gives the file new content under a temporary name and renames it. So the file always has its old or its new
// content. With Durable::yes this holds even after a crash of the machine, by an fsync of the file and one of
// its folder, which may take long.
enum class Durable : std::uint8_t { yes, no };
Result<void> replace_file(const std::string& path, std::string_view data, unsigned mode,
                          Durable durable = Durable::yes);

}  // namespace glidepod
