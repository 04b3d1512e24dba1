#include "lib/base/config.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "lib/base/file.hpp"
#include "lib/base/text.hpp"

namespace glidepod {
namespace {

constexpr std::size_t k_longest_shown = 200;

// The text as people may see it. The value of a secret is never shown.
std::string shown(const Config::Key& key, const std::string& text) {
  return key.is_secret && !text.empty() ? "(hidden)" : text;
}

std::string heading(const std::string& section) {
  return section == "default" ? "[DEFAULT]" : fmt::format("[{}]", section);
}

// The text for a cell of a Markdown table, with characters escaped that mean something there.
std::string in_table(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '|' || c == '<' || c == '*') result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result;
}
std::string as_code(const std::string& text) {
  std::string result;
  for (const char c : text) result += c == '|' ? std::string("\\|") : std::string(1, c);
  return text.empty() ? "" : fmt::format("`{}`", result);
}

// The edit distance: how many letters have to be added, taken away or exchanged.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    auto diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const auto exchanged = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, exchanged}));
    }
  }
  return row.back();
}

Result<void> take_seconds(std::string_view value, std::int64_t factor, std::chrono::seconds* target,
                          const char* allowed) {
  const auto number = parse_integer(value);
  if (!number || number.value() < 0 || number.value() > 1'000'000'000) return error("must be {}", allowed);
  *target = std::chrono::seconds(number.value() * factor);
  return {};
}

}  // namespace

Config::Key& Config::add(std::string name, const std::string& default_text, std::string allowed,
                         std::string about, Assign assign) {
  return keys_.emplace_back(Key{.section = section_,
                                .name = std::move(name),
                                .about = std::move(about),
                                .allowed = std::move(allowed),
                                .assign = std::move(assign),
                                .default_text = default_text,
                                .value = default_text});
}

Config::Key& Config::text(std::string name, std::string* target, std::string about) {
  return add(std::move(name), *target, "any text", std::move(about),
             [target](std::string_view value) -> Result<void> {
               *target = value;
               return {};
             });
}

Config::Key& Config::number(std::string name, const std::string& default_text, std::int64_t least,
                            std::int64_t most, std::string about, std::function<void(std::int64_t)> take) {
  auto allowed = fmt::format("a whole number from {} to {}", least, most);
  auto assign = [=, take = std::move(take)](std::string_view value) -> Result<void> {
    const auto number = parse_integer(value);
    if (!number || number.value() < least || number.value() > most) return error("must be {}", allowed);
    take(number.value());
    return {};
  };
  return add(std::move(name), default_text, allowed, std::move(about), std::move(assign));
}

Config::Key& Config::duration(std::string name, std::chrono::seconds* target, std::string about) {
  constexpr const char* k_allowed = "a time such as 90s, 15m, 2h or 1d";
  auto assign = [target](std::string_view value) {
    constexpr std::string_view k_units = "smhd";
    constexpr std::int64_t k_factors[] = {1, 60, 3600, 86400};
    const auto unit = value.empty() ? std::string_view::npos : k_units.find(value.back());
    if (unit != std::string_view::npos) value.remove_suffix(1);
    return take_seconds(value, unit == std::string_view::npos ? 1 : k_factors[unit], target, k_allowed);
  };
  return add(std::move(name), fmt::format("{}s", target->count()), k_allowed, std::move(about), assign);
}

Config::Key& Config::seconds(std::string name, std::chrono::seconds* target, std::string about) {
  constexpr const char* k_allowed = "a whole number of seconds";
  auto assign = [target](std::string_view value) { return take_seconds(value, 1, target, k_allowed); };
  return add(std::move(name), std::to_string(target->count()), k_allowed, std::move(about), assign).in("s");
}

Config::Key& Config::one_of(std::string name, const std::string& chosen, std::vector<std::string> words,
                            std::string about, std::function<void(std::string_view)> take) {
  auto allowed = fmt::format("one of: {}", fmt::join(words, ", "));
  auto assign = [=, words = std::move(words),
                 take = std::move(take)](std::string_view value) -> Result<void> {
    if (std::ranges::find(words, value) == words.end()) return error("must be {}", allowed);
    take(value);
    return {};
  };
  return add(std::move(name), chosen, allowed, std::move(about), std::move(assign));
}

Config::Key& Config::list(std::string name, std::vector<std::string>* target, std::string about,
                          Assign check) {
  auto assign = [target, check = std::move(check)](std::string_view value) -> Result<void> {
    if (value.empty()) return {};
    if (check) TRY(check(value));
    target->emplace_back(value);
    return {};
  };
  auto& key = add(std::move(name), fmt::format("{}", fmt::join(*target, " | ")),
                  "any text, in as many lines as there are values", std::move(about), std::move(assign));
  key.clear = [target] { target->clear(); };
  return key;
}

Config::Key* Config::find(std::string_view section, std::string_view name) {
  const auto found =
      std::ranges::find_if(keys_, [=](const Key& key) { return key.name == name && key.section == section; });
  return found == keys_.end() ? nullptr : &*found;
}

Result<void> Config::set(Key& key, std::string_view value, std::string_view written, std::string_view where) {
  if (const auto done = key.assign(value); !done) {
    const auto name = key.section.empty() ? key.name : fmt::format("[{}] {}", key.section, key.name);
    return error("{}{}{} = '{}': {}", where, where.empty() ? "" : ": ", name,
                 shown(key, one_line(written, k_longest_shown)), done.error().message());
  }
  const bool goes_on = key.clear && !key.origin.empty() && !key.value.empty();
  key.value = goes_on ? fmt::format("{} | {}", key.value, written) : std::string(written);
  key.origin = where;
  return {};
}

Result<void> Config::read_file(const std::string& path, Missing missing) {
  const auto content = glidepod::read_file(path, std::size_t{1} << 20);
  if (!content && content.error().code() == ENOENT && missing == Missing::allowed) return {};
  if (!content) return content.error();
  return read_text(content.value(), path);
}

Result<void> Config::read_text(std::string_view content, std::string_view name) {
  const auto wrong = problems(content, name);
  return wrong.empty() ? Result<void>() : Error(wrong.front());
}

std::vector<std::string> Config::problems(std::string_view content, std::string_view name) {
  std::vector<std::string> result;
  std::set<std::string, std::less<>> seen;
  int number = 0;
  for (const std::string& raw : split(content, '\n')) {
    const auto where = fmt::format("{}:{}", name, ++number);
    const auto line = trim(raw);
    if (line.empty() || line.front() == '#') continue;
    const auto equals = line.find('=');
    if (equals == std::string_view::npos) {
      result.push_back(fmt::format("{}: not of the form key = value", where));
      continue;
    }
    const auto word = trim(line.substr(0, equals));
    auto* key = find("", word);
    if (!key) {
      const auto meant = nearest("", word);
      result.push_back(fmt::format("{}: unknown setting '{}'{}", where, one_line(word, k_longest_shown),
                                   meant.empty() ? "" : fmt::format("; '{}' is meant?", meant)));
      continue;
    }
    if (key->clear && seen.emplace(word).second) {
      key->clear();
      key->value.clear();
    }
    const auto value = trim(line.substr(equals + 1));
    if (const auto done = set(*key, value, value, where); !done) result.push_back(done.error().message());
  }
  return result;
}

Result<void> Config::read_environment(const char* const* environment) {
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const auto equals = entry.find('=');
    if (equals == std::string_view::npos || !entry.starts_with(prefix_)) continue;
    const auto name = entry.substr(0, equals);
    const auto word = lower_case(name.substr(prefix_.size()));
    auto* key = find("", word);
    if (!key) continue;
    const auto where = fmt::format("environment variable {}", name);
    const auto value = entry.substr(equals + 1);
    if (key->clear) {
      key->clear();
      key->value.clear();
    }
    for (const std::string& part : key->clear ? split(value, '\n') : std::vector{std::string(value)})
      TRY(set(*key, trim(part), trim(part), where));
  }
  return {};
}

std::string Config::nearest(std::string_view section, std::string_view name) const {
  std::string result;
  auto least = std::min<std::size_t>(3, name.size() / 2 + 1);  // a name that is farther away is not suggested
  for (const Key& key : keys_) {
    if (key.section != section) continue;
    if (const auto far = distance(name, key.name); far < least) {
      least = far;
      result = key.name;
    }
  }
  return result;
}

std::string Config::describe() const {
  std::size_t width = 0;
  for (const Key& key : keys_) width = std::max(width, key.name.size());
  std::string result, section;
  for (const Key& key : keys_) {
    if (std::exchange(section, key.section) != key.section) result += heading(key.section) + '\n';
    result += fmt::format("  {:<{}} {} [{}]\n", key.name, width + 1, key.about, shown(key, key.default_text));
  }
  return result;
}

Result<std::string> Config::in_force(const std::vector<std::string>& names) const {
  for (const auto& name : names)
    if (std::ranges::none_of(keys_, [&name](const Key& key) { return key.name == name; }))
      return error("there is no key '{}'", one_line(name, k_longest_shown));
  std::string result, section;
  for (const Key& key : keys_) {
    if (!names.empty() && std::ranges::find(names, key.name) == names.end()) continue;
    if (std::exchange(section, key.section) != key.section) result += heading(key.section) + '\n';
    std::string value = shown(key, key.value);
    std::ranges::replace(value, '\n', ' ');
    const auto whence = key.origin.empty() ? "by default" : fmt::format("from {}", key.origin);
    result +=
        fmt::format("  {} = {}\n      {}\n      {}; default: {}; since {}\n", key.name, value, key.about,
                    whence, key.default_text.empty() ? "empty" : shown(key, key.default_text), key.since);
  }
  return result;
}

std::string Config::markdown() const {
  std::string result;
  const std::string* section = nullptr;
  for (const Key& key : keys_) {
    if (!section || *section != key.section) {
      if (!key.section.empty()) result += fmt::format("\n## {}\n", heading(key.section));
      result += "| key | meaning | default | what it may be | since |\n|---|---|---|---|---|\n";
    }
    section = &key.section;
    const auto unit = key.unit.empty() ? "" : fmt::format(", in {}", key.unit);
    result += fmt::format("| `{}` | {}{} | {} | {}{} | {} |\n", key.name, in_table(key.about),
                          key.is_secret ? "; secret: never shown" : "", as_code(shown(key, key.default_text)),
                          in_table(key.allowed), key.allowed.ends_with("seconds") ? "" : unit, key.since);
  }
  return result;
}

}  // namespace glidepod
