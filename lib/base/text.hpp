#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"

namespace glidepod {

std::vector<std::string> split(std::string_view text, char separator);
// The text without blanks, tabs and line ends at its beginning and end.
std::string_view trim(std::string_view text);

// A to Z become a to z, whatever the locale.
std::string lower_case(std::string_view text);

// The whole text as a decimal number. If it is none, the Error quotes it.
Result<std::int64_t> parse_integer(std::string_view text);

// The first line of a text, with at most limit bytes and blanks for control characters. It fits into a log or
// a hold reason.
std::string one_line(std::string_view text, std::size_t limit = 1000);

// The text with every byte that is no printable ASCII written as \xNN, so that no terminal obeys it.
std::string harmless(std::string_view text);

// The text in at most width bytes: the middle of a longer text becomes a "~".
std::string shortened(std::string_view text, std::size_t width);

// Shortens the rows of a table so that columns() makes lines of at most width bytes, if that is possible.
// Cells are shortened in the widest columns first. Before any column gets less than 12 bytes, the columns in
// `spare` are left out, in that order.
void fit_columns(std::vector<std::vector<std::string>>& rows, std::size_t width,
                 const std::vector<std::string_view>& spare);

// This many random bytes from the kernel, as lower-case hexadecimal digits.
std::string random_hex(std::size_t bytes);

// Rows of a table, in columns as wide as their widest cell. All rows have the same number of cells. The first
// `to_the_right` columns are aligned to the right; the last column is not padded.
std::string columns(const std::vector<std::vector<std::string>>& rows, std::size_t to_the_right = 0);

}  // namespace glidepod
