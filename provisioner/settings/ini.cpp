#include "provisioner/settings/ini.hpp"

#include <algorithm>
#include <set>

#include "lib/base/text.hpp"
#include "provisioner/settings/entries.hpp"

namespace glidepod::provisioner {

namespace {

constexpr std::string_view k_default = "default";
constexpr int k_most_interpolations = 10;  // ConfigParser's own limit

std::size_t indentation(std::string_view line) {
  const auto first = line.find_first_not_of(" \t");
  return first == std::string_view::npos ? line.size() : first;
}

bool is_comment(std::string_view trimmed) {
  return !trimmed.empty() && (trimmed.front() == '#' || trimmed.front() == ';');
}

// Takes a trailing backslash off; true where there was one.
bool take_backslash(std::string_view& line) {
  if (line.empty() || line.back() != '\\') return false;
  line.remove_suffix(1);
  return true;
}

std::string decode(std::string_view text) {
  static constexpr std::pair<std::string_view, char> escapes[] = {
      {"&colon;", ':'}, {"&comma;", ','}, {"&amp;", '&'}};
  std::string result;
  while (!text.empty()) {
    const auto escape = std::find_if(std::begin(escapes), std::end(escapes),
                                     [text](const auto& e) { return text.starts_with(e.first); });
    result += escape == std::end(escapes) ? text.front() : escape->second;
    text.remove_prefix(escape == std::end(escapes) ? 1 : escape->first.size());
  }
  return result;
}

// A value while its lines are being gathered.
struct Gathering {
  std::string* value = nullptr;
  std::size_t indent = 0;
  bool joined = false;  // the last line ended in a backslash
  int blank_lines = 0;  // kept only if the value goes on after them

  void start(std::string* target, std::size_t indented, std::string_view first) {
    *this = {target, indented, take_backslash(first), 0};
    *value = trim(first);
  }
  void add(std::string_view line) {
    const bool more = take_backslash(line);
    line = trim(line);
    if (joined) {
      if (!value->empty() && !line.empty()) *value += ' ';
    } else {
      value->append(static_cast<std::size_t>(blank_lines) + (value->empty() ? 0 : 1), '\n');
    }
    *value += line;
    joined = more;
    blank_lines = 0;
  }
};

}  // namespace

std::vector<Entry> entries(std::string_view text, std::string_view name, std::vector<std::string>& problems) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  std::vector<Entry> result;
  std::string section;
  bool in_section = false;
  std::set<std::pair<std::string, std::string>> seen;
  Gathering gathering;
  std::string passed_over;  // what goes on after a wrong line
  int number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    ++number;
    const auto end = rest.find('\n');
    std::string_view raw = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (!raw.empty() && raw.back() == '\r') raw.remove_suffix(1);
    const auto line = trim(raw);

    if (is_comment(line)) continue;
    if (line.empty()) {
      gathering.joined = false;
      if (gathering.value) ++gathering.blank_lines;
      continue;
    }
    // As for ConfigParser, only an indented line goes on: a backslash before the next key or section, too, is
    // the value's last line.
    if (gathering.value && indentation(raw) > gathering.indent) {
      gathering.add(line);
      continue;
    }
    gathering = {};
    const auto where = fmt::format("{}:{}", name, number);
    if (line.front() == '[') {
      const auto close = line.find(']');
      in_section = true;
      if (close == std::string_view::npos || close == 1) {
        problems.push_back(fmt::format("{}: not a section such as [k8s]", where));
        section = "?";
        continue;
      }
      section = lower_case(line.substr(1, close - 1));
      result.push_back({section, "", "", where});
      continue;
    }
    const auto separator = line.find_first_of("=:");
    const bool is_key = separator != std::string_view::npos && separator != 0;
    const auto key = is_key ? lower_case(trim(line.substr(0, separator))) : "";
    std::string* value = &passed_over;
    if (!in_section) {
      problems.push_back(fmt::format("{}: a setting before the first [section]", where));
    } else if (!is_key) {
      problems.push_back(
          fmt::format("{}: not of the form key = value; what goes on the value above it is indented", where));
    } else if (section != "?" && !seen.emplace(section, key).second) {
      problems.push_back(fmt::format("{}: a key that stands in [{}] already", where, section));
    } else if (section != "?") {
      value = &result.emplace_back(Entry{section, key, "", where}).value;
    }
    gathering.start(value, indentation(raw), is_key ? line.substr(separator + 1) : line);
  }
  return result;
}

Result<void> Ini::read(std::string_view text, std::string_view name) {
  std::vector<std::string> problems;
  auto all = entries(text, name, problems);
  if (!problems.empty()) return Error(problems.front());
  for (auto& entry : all) {
    auto& section = sections_[entry.section];
    if (!entry.key.empty()) section[entry.key] = std::move(entry.value);
  }
  return {};
}

const std::string* Ini::raw(std::string_view section, std::string_view key) const {
  for (const auto name : {section, k_default}) {
    const auto found = sections_.find(lower_case(name));
    if (found == sections_.end()) continue;
    if (const auto value = found->second.find(key); value != found->second.end()) return &value->second;
  }
  return nullptr;
}

Result<std::string> Ini::interpolate(std::string_view section, std::string_view value, int depth,
                                     int& budget) const {
  // A value that refers twice to one that refers twice ... grows exponentially: the budget ends it.
  if (depth > k_most_interpolations || --budget < 0) return error("%(...)s refers to itself");
  std::string result;
  while (true) {
    const auto percent = value.find('%');
    result += value.substr(0, percent);
    if (percent == std::string_view::npos) return result;
    value.remove_prefix(percent + 1);
    if (value.starts_with('%')) {
      result += '%';
      value.remove_prefix(1);
      continue;
    }
    const auto close = value.find(")s");
    if (!value.starts_with('(') || close == std::string_view::npos)
      return error("a '%' must be written '%%', or '%(key)s' for the value of another key");
    const auto* other = raw(section, lower_case(value.substr(1, close - 1)));
    if (!other) return error("its '%(key)s' names a key that is not there; a '%' must be written '%%'");
    result += TRY(interpolate(section, *other, depth + 1, budget));
    value.remove_prefix(close + 2);
  }
}

Result<std::optional<std::string>> Ini::get(std::string_view section, std::string_view key) const {
  const auto* value = raw(section, key);
  if (!value) return std::optional<std::string>();
  int budget = 100;
  auto resolved = interpolate(section, *value, 0, budget);
  if (!resolved) return error("[{}] {}: {}", section, key, resolved.error().message());
  return std::optional(std::move(resolved).value());
}

std::vector<std::pair<std::string, std::vector<std::string>>> Ini::keys() const {
  std::vector<std::pair<std::string, std::vector<std::string>>> result;
  for (const auto& [name, section] : sections_) {
    auto& keys = result.emplace_back(name, std::vector<std::string>()).second;
    for (const auto& entry : section) keys.push_back(entry.first);
  }
  return result;
}

Result<std::vector<std::string>> parse_list(std::string_view text) {
  std::vector<std::string> result;
  if (trim(text).empty()) return result;
  for (const auto& part : split(text, ',')) {
    const auto element = trim(part);
    if (element.empty()) return error("must be a list such as a,b without empty elements");
    result.push_back(decode(element));
  }
  return result;
}

Result<std::vector<std::pair<std::string, std::string>>> parse_dict(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> result;
  if (trim(text).empty()) return result;
  for (const auto& part : split(text, ',')) {
    const auto sides = split(trim(part), ':');
    const auto number = result.size() + 1;
    // The texts themselves are not told: they may be secrets.
    if (sides.size() != 2 || trim(sides[0]).empty())
      return error(
          "must be a dictionary such as key:value,key:value; its element {} is not key:value (a ':' inside a "
          "value is written &colon;, a ',' &comma;)",
          number);
    const auto key = decode(trim(sides[0]));
    const auto same = std::ranges::find(result, key, &std::pair<std::string, std::string>::first);
    if (same != result.end())
      return error("must have each key once: elements {} and {} have the same", same - result.begin() + 1,
                   number);
    result.emplace_back(key, decode(trim(sides[1])));
  }
  return result;
}

}  // namespace glidepod::provisioner
