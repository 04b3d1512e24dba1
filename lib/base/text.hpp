#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"

namespace glidepod {

std::vector<std::string> split(std::string_view text, char separator);
// Without blanks, tabs and line ends at either side.
std::string_view trim(std::string_view text);

// The whole text as a decimal number; an error that quotes it otherwise.
Result<std::int64_t> parse_integer(std::string_view text);

// The first line of a text, at most limit bytes, control characters as blanks: fit for a log or a hold
// reason.
std::string one_line(std::string_view text, std::size_t limit = 1000);

// The text with every byte that is no printable ASCII as \xNN: whatever it was, no terminal obeys it.
std::string harmless(std::string_view text);

// At most width bytes of a text: the middle of a longer one becomes a "~".
std::string shortened(std::string_view text, std::size_t width);

// A table's rows, so narrow that columns() makes lines of at most width bytes, if that can be. Columns of
// `spare` are left out, in that order, before a column has less than its due, 12; then cells are shortened,
// in the widest columns first.
void fit_columns(std::vector<std::vector<std::string>>& rows, std::size_t width,
                 const std::vector<std::string_view>& spare);

// So many random bytes of the kernel's as lower-case hexadecimal digits.
std::string random_hex(std::size_t bytes);

// Rows of a table, each as many cells, in columns as wide as their widest cell; so many of the first are
// aligned to the right. The last column is not filled up.
std::string columns(const std::vector<std::vector<std::string>>& rows, std::size_t to_the_right = 0);

}  // namespace glidepod
