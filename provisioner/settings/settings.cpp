#include "provisioner/settings/settings.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>

#include "lib/base/config.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text.hpp"
#include "provisioner/settings/entries.hpp"
#include "provisioner/settings/keys.hpp"
#include "provisioner/settings/shown.hpp"

namespace glidepod::provisioner {

namespace {

using Key = Config::Key;

// What counts in place of a key that is accepted for PRP's files; nullptr where the key itself does.
const char* used_instead(std::string_view section, std::string_view key) {
  if (section == "lancium" && key == "lancium_job_ttl") return "sightings_before_removal is";
  if (section != "htcondor") return nullptr;
  if (key == "condor_host") return "pool is";
  const bool of_backend = key == "namespace" || key == "app_name" || key == "k8s_domain";
  return of_backend ? "that of [k8s] is" : nullptr;
}

// Shown in place of a secret: a number, another one for each value, that says nothing of it.
std::string hidden(const std::string& value) {
  static std::map<std::string, std::size_t> numbers;
  return fmt::format("(hidden, {})", numbers.emplace(value, numbers.size() + 1).first->second);
}

// A key's name that may be told: it is no piece of somebody's secret that has lost its indentation.
bool may_be_told(std::string_view name) {
  return name.size() <= 60 &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_.-") == std::string::npos;
}

// Files on their way to LoadedSettings. All that is wrong is gathered.
class Reading {
 public:
  Reading() { add_keys(config_, loaded_.settings); }

  void take(const std::vector<File>& files) {
    Ini ini;
    for (const auto& file : files) {
      ++file_;
      List wrong;
      bool after_secret = false;
      std::string right;
      for (auto& entry : entries(file.text, file.name, wrong)) {
        std::string value = entry.value;
        for (auto at = value.find('\n'); at != std::string::npos; at = value.find('\n', at + 3))
          value.replace(at, 1, "\n  ");
        right += entry.key.empty() ? fmt::format("[{}]\n", entry.section)
                                   : fmt::format("{}={}\n", entry.key, value);
        positions_[{entry.section, entry.key}] = {std::move(entry.value), std::move(entry.where), file_,
                                                  after_secret};
        after_secret = is_secret(entry.key);
      }
      for (const auto& line : wrong) problems_.push_back({file_, line.substr(0, line.find(": ")), line});
      // With wrong lines the others are looked at all the same.
      if (const auto read = ini.read(wrong.empty() ? file.text : right, file.name); !read)
        problems_.push_back({file_, file.name, read.error().message()});
    }
    take(ini);
  }

  void take(const Ini& ini) {
    const auto all = ini.keys();
    for (auto& key : config_.keys()) assign(ini, key);
    for (const auto& [section, names] : all)
      if (section.starts_with(k_place)) take_place(ini, section, names);
    for (auto& place : place_settings_) loaded_.settings.places.push_back(std::move(place));
    for (const auto& [section, names] : all)
      if (!known_section(section)) {
        unknown(section, "", fmt::format("unknown section [{}] is ignored", section));
      } else {
        for (const auto& name : names)
          if (!known(section, name)) unknown_key(section, name);
      }
    for (const auto& [section, names] : all)
      for (const auto& name : names) {
        write_down(ini, section, name);
        // PRP's files have such a key in both places, with the same value: that needs no note.
        const auto* instead = used_instead(section, name);
        if (instead && same(ini.get(section, name), ini.get("k8s", name))) continue;
        if (instead) note(section, name, fmt::format("'{}' in [{}] is not used: {}", name, section, instead));
      }
    std::ranges::sort(loaded_.written);
    std::ranges::stable_sort(problems_, {}, &Problem::position);
    std::ranges::stable_sort(unknown_, {}, &Problem::position);
  }

  Result<LoadedSettings> loaded() && {
    if (!problems_.empty()) return Error(problems_.front().text);
    return std::move(loaded_);
  }
  Result<std::string> in_force(const List& names) const {
    if (!problems_.empty()) return Error(problems_.front().text);
    return config_.in_force(names);
  }
  Checked checked() && {
    Checked result;
    problems_.insert(problems_.end(), unknown_.begin(), unknown_.end());
    std::ranges::stable_sort(problems_, {}, &Problem::position);
    for (auto& problem : problems_) result.problems.push_back(std::move(problem.text));
    result.notes = std::move(notes_);
    return result;
  }

 private:
  static constexpr std::string_view k_place = "k8s:";
  struct Position {
    std::string value, where;
    std::size_t file = 0;
    bool after_secret = false;
  };
  struct Problem {
    std::size_t file;
    std::string where, text;
    std::tuple<std::size_t, std::size_t, std::string> position() const {
      return {file, where.size(), where};
    }  // in the order of the lines
  };

  bool is_secret(std::string_view name) const {
    return std::ranges::any_of(config_.keys(),
                               [=](const Key& key) { return key.is_secret && key.name == name; });
  }
  bool known_section(std::string_view section) const {
    return section.starts_with(k_place) ||
           std::ranges::any_of(config_.keys(), [=](const Key& key) { return key.section == section; });
  }
  // What stands in [DEFAULT] is seen by every section. The other keys that [htcondor] shares with the
  // backends have no meaning of their own there.
  bool known(std::string_view section, std::string_view name) const {
    if (used_instead(section, name) || (section.starts_with(k_place) && of_all_places(name))) return true;
    return std::ranges::any_of(config_.keys(), [=](const Key& key) {
      return key.name == name && (section == "default" || key.section == section);
    });
  }
  const Position* find(std::string_view section, std::string_view name) const {
    for (const auto in : {section, std::string_view("default")})
      if (const auto found = positions_.find({std::string(in), std::string(name)}); found != positions_.end())
        return &found->second;
    return nullptr;
  }
  static bool same(const Result<std::optional<std::string>>& one,
                   const Result<std::optional<std::string>>& other) {
    return one && other && one.value() == other.value();
  }
  static std::string at(const Position* position, const std::string& text) {
    return position ? fmt::format("{}: {}", position->where, text) : text;
  }
  // One problem a line: what stands in [DEFAULT] is wrong for each section that sees it.
  void problem(const Position* position, std::string text) {
    const auto where = position ? position->where : "";
    const auto told = [&where](const Problem& other) { return !where.empty() && other.where == where; };
    if (std::ranges::none_of(problems_, told))
      problems_.push_back({position ? position->file : 0, where, std::move(text)});
  }

  void assign(const Ini& ini, Key& key) {
    const auto* position = find(key.section, key.name);
    const auto value = ini.get(key.section, key.name);
    if (!value) return problem(position, at(position, value.error().message()));
    if (!*value) return;
    const auto done = config_.set(key, **value, position ? position->value : **value,
                                  position ? position->where : std::string());
    if (!done) problem(position, done.error().message());
  }

  // What [k8s] says, and above it what the section says itself.
  void take_place(const Ini& ini, const std::string& section, const List& names) {
    const auto name = section.substr(k_place.size());
    const bool good = !name.empty() && name.size() <= 30 && name.front() != '-' &&
                      name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
    if (!good) {
      const auto* position = find(section, "");
      return problem(
          position, at(position, fmt::format("[{}]: a place's name is up to 30 of a-z, 0-9 and -", section)));
    }
    auto& settings = place_settings_.emplace_back(loaded_.settings.kubernetes);
    settings.place = name;
    const auto before = config_.keys().size();
    add_place_keys(config_, section, settings);
    for (std::size_t i = before; i < config_.keys().size(); ++i) {
      auto& key = config_.keys()[i];
      if (const auto* base = config_.find("k8s", key.name)) {
        key.default_text = key.value = base->value;
        key.origin = base->origin;
      }
      if (std::ranges::find(names, key.name) != names.end()) assign(ini, key);
    }
    for (const auto& key : names)
      if (of_all_places(key))
        note(section, key, fmt::format("'{}' in [{}] is not used: that of [k8s] is", key, section));
  }

  void note(const std::string& section, const std::string& name, std::string text) {
    notes_.push_back(at(find(section, name), text));
    loaded_.warnings.push_back({std::move(text)});
  }
  void unknown(const std::string& section, const std::string& name, const std::string& text,
               const std::string& mend = "") {
    const auto* position = find(section, name);
    unknown_.push_back(
        {position ? position->file : 0, position ? position->where : "", at(position, text + mend)});
    loaded_.warnings.push_back({text});
  }
  void unknown_key(const std::string& section, const std::string& name) {
    const auto* position = find(section, name);
    if (!may_be_told(name) || (position && position->after_secret))
      return unknown(section, name, fmt::format("a key in [{}] that is not known is ignored", section),
                     "; what goes on the value above it is indented");
    const auto meant = config_.nearest(section, name);
    unknown(section, name, fmt::format("unknown key '{}' in [{}] is ignored", name, section),
            meant.empty() ? "" : fmt::format("; '{}' is meant?", meant));
  }

  // Only the values of known keys that are no secrets are told, and these as they stand there.
  void write_down(const Ini& ini, const std::string& section, const std::string& name) {
    const auto value = ini.get(section, name);
    const auto* position = find(section, name);
    if (!value) return problem(position, at(position, value.error().message()));
    const auto text = position ? position->value : value->value_or("");
    const bool told = known(section, name) && !is_secret(name);
    const bool named = known(section, name) || (may_be_told(name) && !(position && position->after_secret));
    loaded_.written.push_back(
        fmt::format("[{}] {} = {}", section, named ? name : "(hidden)", told ? text : hidden(text)));
  }

  LoadedSettings loaded_;
  std::deque<KubernetesSettings> place_settings_;  // config_ has their addresses
  Config config_;
  std::size_t file_ = 0;
  std::map<std::pair<std::string, std::string>, Position> positions_;  // of [section] key, and of sections
  std::vector<Problem> problems_, unknown_;
  List notes_;
};

constexpr const char* k_of_places =
    "A cluster or namespace beside others. It has the keys of [k8s], with the values of [k8s] where it says "
    "nothing "
    "else, and these:";

}  // namespace

const char* to_string(QosClass qos_class) {
  return qos_class == QosClass::guaranteed ? "Guaranteed" : "Burstable";
}

const char* to_string(PullPolicy policy) {
  switch (policy) {
    case PullPolicy::always:
      return "Always";
    case PullPolicy::if_not_present:
      return "IfNotPresent";
    case PullPolicy::never:
      return "Never";
  }
  return "";
}

Result<LoadedSettings> parse_settings(const Ini& ini) {
  Reading reading;
  reading.take(ini);
  return std::move(reading).loaded();
}

Result<LoadedSettings> settings_of(const std::vector<File>& files) {
  Reading reading;
  reading.take(files);
  return std::move(reading).loaded();
}

Result<std::vector<File>> read_settings_files(const List& files) {
  std::vector<File> texts;
  for (const auto& file : files) {
    auto text = TRY(read_file(file, std::size_t{1} << 20));
    texts.push_back({file, std::move(text)});
  }
  return texts;
}

Result<LoadedSettings> load_settings(const List& files) {
  return settings_of(TRY(read_settings_files(files)));
}

Result<std::string> settings_in_force(const std::vector<File>& files, const List& names) {
  Reading reading;
  reading.take(files);
  return reading.in_force(names);
}

Checked check_settings(const std::vector<File>& files) {
  Reading reading;
  reading.take(files);
  return std::move(reading).checked();
}

List changes(const LoadedSettings& before, const LoadedSettings& after) {
  List result;
  const auto add = [&result](char sign, const List& from, const List& without) {
    List only;
    std::set_difference(from.begin(), from.end(), without.begin(), without.end(), std::back_inserter(only));
    for (const auto& line : only) result.push_back(fmt::format("{} {}", sign, line));
  };
  add('-', before.written, after.written);
  add('+', after.written, before.written);
  return result;
}

std::string describe_settings() {
  Settings settings;
  KubernetesSettings place;
  Config config, of_place;
  add_keys(config, settings);
  add_own_place_keys(of_place, place);
  return fmt::format("{}[k8s:NAME]\n  {}\n{}", config.describe(), k_of_places, of_place.describe());
}

std::string settings_page() {
  Settings settings;
  KubernetesSettings place;
  Config config, of_place;
  add_keys(config, settings);
  add_own_place_keys(of_place, place);
  return fmt::format(
      "# The provisioner's settings\n\n"
      "The files have PRP's form: sections, and lines `key=value`. [provisioner.md](provisioner.md) says "
      "what they are "
      "for. `provisioner settings --config FILE` shows each key with the value in force, and where it comes "
      "from; "
      "`provisioner "
      "settings --check FILE` tells all that is wrong in a file.\n\n"
      "This page is what `provisioner settings --markdown` prints.\n{}\n## [k8s:NAME]\n{}\n\n{}",
      config.markdown(), k_of_places, of_place.markdown());
}

}  // namespace glidepod::provisioner
