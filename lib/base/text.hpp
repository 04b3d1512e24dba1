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

// Rows of a table, each as many cells, in columns as wide as their widest cell; so many of the first are
// aligned to the right. The last column is not filled up.
std::string columns(const std::vector<std::vector<std::string>>& rows, std::size_t to_the_right = 0);

}  // namespace glidepod
