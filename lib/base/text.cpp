#include "lib/base/text.hpp"

#include <algorithm>
#include <charconv>

namespace glidepod {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const auto at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

Result<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size())
    return error("'{}' is not a whole number", text);
  return value;
}

std::string one_line(std::string_view text, std::size_t limit) {
  std::string line(text.substr(0, text.find('\n')).substr(0, limit));
  for (char& c : line)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return line;
}

std::string columns(const std::vector<std::vector<std::string>>& rows, std::size_t to_the_right) {
  std::vector<std::size_t> widths(rows.empty() ? 0 : rows[0].size(), 0);
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string result;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      const std::string fill(widths[i] - row[i].size(), ' ');
      result += (i < to_the_right ? fill + row[i] : row[i] + fill) + "  ";
    }
    result += row.back() + '\n';
  }
  return result;
}

}  // namespace glidepod
