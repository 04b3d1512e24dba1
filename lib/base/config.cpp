#include "lib/base/config.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <memory>
#include <set>

#include "lib/base/file.hpp"
#include "lib/base/text.hpp"

namespace glidepod {

void Config::text(std::string key, std::string* target, std::string help) {
  add({std::move(key),
       *target,
       std::move(help),
       [target](std::string_view value) -> Result<void> {
         *target = value;
         return {};
       },
       {}});
}

void Config::integer(std::string key, std::int64_t* target, std::int64_t least, std::int64_t most,
                     std::string help) {
  add({std::move(key),
       std::to_string(*target),
       std::move(help),
       [=](std::string_view value) -> Result<void> {
         const auto number = parse_integer(value);
         if (!number || number.value() < least || number.value() > most)
           return error("must be a whole number from {} to {}", least, most);
         *target = number.value();
         return {};
       },
       {}});
}

void Config::duration(std::string key, std::chrono::seconds* target, std::string help) {
  add({std::move(key),
       fmt::format("{}s", target->count()),
       std::move(help),
       [target](std::string_view value) -> Result<void> {
         static const std::map<char, std::int64_t> units = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
         std::int64_t factor = 1;
         if (!value.empty() && units.contains(value.back())) {
           factor = units.at(value.back());
           value.remove_suffix(1);
         }
         const auto number = parse_integer(value);
         if (!number || number.value() < 0 || number.value() > 1'000'000'000)
           return error("must be a time such as 90s, 15m, 2h or 1d");
         *target = std::chrono::seconds(number.value() * factor);
         return {};
       },
       {}});
}

void Config::choice(std::string key, int* target, std::vector<std::string> words, std::string help) {
  auto default_text = words.at(static_cast<std::size_t>(*target));
  add({std::move(key),
       std::move(default_text),
       std::move(help),
       [target, words = std::move(words)](std::string_view value) -> Result<void> {
         const auto found = std::find(words.begin(), words.end(), value);
         if (found == words.end()) return error("must be one of: {}", fmt::join(words, ", "));
         *target = static_cast<int>(found - words.begin());
         return {};
       },
       {}});
}

void Config::list(std::string key, std::vector<std::string>* target, std::string help) {
  add({std::move(key), fmt::format("{}", fmt::join(*target, " | ")), std::move(help),
       [target](std::string_view value) -> Result<void> {
         if (!value.empty()) target->emplace_back(value);
         return {};
       },
       [target] { target->clear(); }});
}

Result<void> Config::set(std::string_view key, std::string_view value, std::string_view where) {
  const auto setting =
      std::find_if(settings_.begin(), settings_.end(), [key](const Setting& s) { return s.key == key; });
  if (setting == settings_.end()) return error("{}: unknown setting '{}'", where, key);
  const auto done = setting->set(value);
  if (!done) return error("{}: {} = '{}': {}", where, key, value, done.error().message());
  return {};
}

Result<void> Config::read_file(const std::string& path, Missing missing) {
  const auto content = glidepod::read_file(path, std::size_t{1} << 20);
  if (!content && content.error().code() == ENOENT && missing == Missing::allowed) return {};
  if (!content) return content.error();
  return read_text(content.value(), path);
}

Result<void> Config::read_text(std::string_view content, std::string_view name) {
  std::set<std::string, std::less<>> seen;
  int number = 0;
  for (const std::string& raw : split(content, '\n')) {
    ++number;
    const auto line = trim(raw);
    if (line.empty() || line.front() == '#') continue;
    const auto equals = line.find('=');
    if (equals == std::string_view::npos)
      return error("{}:{}: '{}' is not of the form key = value", name, number, line);
    const auto key = trim(line.substr(0, equals));
    const auto setting =
        std::find_if(settings_.begin(), settings_.end(), [key](const Setting& s) { return s.key == key; });
    if (setting != settings_.end() && setting->clear && seen.emplace(key).second) setting->clear();
    TRY(set(key, trim(line.substr(equals + 1)), fmt::format("{}:{}", name, number)));
  }
  return {};
}

Result<void> Config::read_environment(const char* const* environment) {
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const auto equals = entry.find('=');
    if (equals == std::string_view::npos || !entry.starts_with(prefix_)) continue;
    const auto name = entry.substr(0, equals);
    std::string key(name.substr(prefix_.size()));
    std::transform(key.begin(), key.end(), key.begin(), [](unsigned char c) { return std::tolower(c); });
    const auto setting =
        std::find_if(settings_.begin(), settings_.end(), [&key](const Setting& s) { return s.key == key; });
    if (setting == settings_.end()) continue;
    const auto value = entry.substr(equals + 1);
    const auto where = fmt::format("environment variable {}", name);
    if (setting->clear) {
      setting->clear();
      for (const std::string& part : split(value, '\n')) TRY(set(key, trim(part), where));
    } else {
      TRY(set(key, trim(value), where));
    }
  }
  return {};
}

bool Config::has(std::string_view key) const {
  return std::any_of(settings_.begin(), settings_.end(), [key](const Setting& s) { return s.key == key; });
}

std::string Config::describe() const {
  std::string result;
  for (const Setting& setting : settings_)
    result += fmt::format("  {:<24} {} [{}]\n", setting.key, setting.help, setting.default_text);
  return result;
}

}  // namespace glidepod
