#include "lib/base/text.hpp"

#include <sys/random.h>

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

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
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

namespace {

using Rows = std::vector<std::vector<std::string>>;

std::vector<std::size_t> widths_of(const Rows& rows) {
  std::vector<std::size_t> widths(rows.empty() ? 0 : rows[0].size(), 0);
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  return widths;
}

std::size_t line_width(const std::vector<std::size_t>& widths, std::size_t most) {
  std::size_t sum = 2 * (widths.size() - 1);
  for (const auto width : widths) sum += std::min(width, most);
  return sum;
}

}  // namespace

std::string harmless(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c >= 0x20 && c < 0x7f)
      result += c;
    else
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return result;
}

std::string shortened(std::string_view text, std::size_t width) {
  if (text.size() <= width) return std::string(text);
  if (width == 0) return {};
  const auto end = (width - 1) / 2;
  return std::string(text.substr(0, width - 1 - end)) + '~' + std::string(text.substr(text.size() - end));
}

void fit_columns(Rows& rows, std::size_t width, const std::vector<std::string_view>& spare) {
  constexpr std::size_t k_due = 12;
  auto widths = widths_of(rows);
  if (widths.empty()) return;
  for (const auto name : spare) {
    if (line_width(widths, k_due) <= width) break;
    const auto found = std::find(rows[0].begin(), rows[0].end(), name);
    if (found == rows[0].end()) continue;
    const auto column = found - rows[0].begin();
    for (auto& row : rows) row.erase(row.begin() + column);
    widths.erase(widths.begin() + column);
  }
  // All columns get the same limit; those that need less keep their width.
  std::size_t most = *std::max_element(widths.begin(), widths.end());
  while (most > 1 && line_width(widths, most) > width) --most;
  for (auto& row : rows)
    for (auto& cell : row) cell = shortened(cell, most);
}

std::string columns(const Rows& rows, std::size_t to_the_right) {
  const auto widths = widths_of(rows);
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

std::string random_hex(std::size_t bytes) {
  std::string raw(bytes, '\0');
  static_cast<void>(!::getrandom(raw.data(), raw.size(), 0));
  std::string text;
  for (const char c : raw) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

}  // namespace glidepod
