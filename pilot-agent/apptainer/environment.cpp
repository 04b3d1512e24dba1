#include "pilot-agent/apptainer/environment.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "lib/base/text.hpp"

namespace glidepod::apptainer {

namespace {

constexpr std::string_view k_prefixes[] = {"SINGULARITYENV_", "APPTAINERENV_"};  // the later one wins

constexpr std::string_view k_always_passed[] = {"TERM",        "http_proxy", "HTTP_PROXY", "https_proxy",
                                                "HTTPS_PROXY", "no_proxy",   "NO_PROXY",   "all_proxy",
                                                "ALL_PROXY",   "ftp_proxy",  "FTP_PROXY"};

// Settings of apptainer itself: the job must not see them as its own.
constexpr std::string_view k_never_set[] = {"HOME", "APPTAINER_SHELL", "APPTAINER_APPNAME",
                                            "SINGULARITY_SHELL", "SINGULARITY_APPNAME"};

bool contains(const auto& list, std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

bool passes(std::string_view name, bool clean) {
  for (const std::string_view prefix : {"APPTAINER_", "SINGULARITY_", "APPTAINERENV_", "SINGULARITYENV_"})
    if (name.starts_with(prefix)) return false;
  if (contains(k_always_passed, name)) return true;
  return !clean && name != "PATH" && name != "HOME" && name != "LD_LIBRARY_PATH";
}

class Variables {
 public:
  void set(std::string_view name, std::string_view value) {
    values_.insert_or_assign(std::string(name), std::string(value));
  }
  // For what comes with a prefix or an option, where some names have a meaning of their own.
  void set_by_user(std::string_view name, std::string_view value) {
    if (name.empty() || contains(k_never_set, name)) return;
    if (name == "PREPEND_PATH" || name == "APPEND_PATH")
      set("SING_USER_DEFINED_" + std::string(name), value);
    else
      set(name, value);
  }
  void erase(const std::string& name) { values_.erase(name); }
  bool has(const std::string& name) const { return values_.contains(name); }

  std::vector<std::string> list() const {
    std::vector<std::string> result;
    result.reserve(values_.size());
    for (const auto& [name, value] : values_) result.push_back(fmt::format("{}={}", name, value));
    return result;
  }

 private:
  std::map<std::string, std::string> values_;
};

// Calls handle(name, value); a string without "=" is no variable.
void each_variable(const std::vector<std::string>& variables, auto handle) {
  for (const std::string_view variable : variables) {
    const auto at = variable.find('=');
    if (at != std::string_view::npos && at != 0) handle(variable.substr(0, at), variable.substr(at + 1));
  }
}

std::string join(const std::vector<std::string>& list, char separator) {
  std::string text;
  for (const auto& item : list) {
    if (!text.empty()) text += separator;
    text += item;
  }
  return text;
}

}  // namespace

std::vector<std::string> container_environment(const EnvironmentRules& rules) {
  Variables result;
  if (rules.clean) result.set("LANG", "C");
  each_variable(rules.caller, [&](std::string_view name, std::string_view value) {
    if (passes(name, rules.clean)) result.set(name, value);
  });
  for (const std::string_view prefix : k_prefixes) {
    each_variable(rules.caller, [&](std::string_view name, std::string_view value) {
      if (name.starts_with(prefix)) result.set_by_user(name.substr(prefix.size()), value);
    });
  }
  const auto set_by_user = [&](std::string_view name, std::string_view value) {
    result.set_by_user(name, value);
  };
  each_variable(rules.files, set_by_user);
  each_variable(rules.options, set_by_user);
  if (result.has("PATH")) {
    result.erase("SING_USER_DEFINED_PREPEND_PATH");
    result.erase("SING_USER_DEFINED_APPEND_PATH");
  }

  // What it takes for its option --app.
  for (const char* name : {"APPTAINER_APPNAME", "SINGULARITY_APPNAME"})
    if (const char* app = find_variable(rules.caller, name); app != nullptr && *app != '\0') {
      result.set("SINGULARITY_APPNAME", app);
      break;
    }
  result.set("HOME", rules.home);
  const std::string_view image = rules.image;
  for (const std::string prefix : {"APPTAINER_", "SINGULARITY_"}) {
    result.set(prefix + "CONTAINER", image);
    result.set(prefix + "NAME", image.substr(image.rfind('/') + 1));
    result.set(prefix + "BIND", join(rules.binds, ','));
  }
  result.set("APPTAINER_COMMAND", word_of(rules.verb));
  return result.list();
}

Result<std::vector<std::string>> read_environment_text(std::string_view text, std::string_view name) {
  std::vector<std::string> variables;
  int number = 0;
  for (const std::string& raw : split(text, '\n')) {
    ++number;
    std::string_view line = trim(raw);
    if (line.empty() || line[0] == '#') continue;
    if (line.starts_with("export ")) line = trim(line.substr(7));
    const auto at = line.find('=');
    if (at == std::string_view::npos || at == 0 || line.substr(0, at).find(' ') != std::string_view::npos)
      return error("{} line {}: not of the form NAME=VALUE", name, number);
    std::string_view value = line.substr(at + 1);
    const char quote = value.size() > 1 && value.front() == value.back() ? value.front() : '\0';
    if (quote == '"' || quote == '\'') value = value.substr(1, value.size() - 2);
    if (quote != '\'' && value.find_first_of("$`") != std::string_view::npos)
      return error("{} line {}: would need a shell; only plain values are understood", name, number);
    variables.push_back(std::string(line.substr(0, at + 1)) + std::string(value));
  }
  return variables;
}

const char* find_variable(const std::vector<std::string>& environment, std::string_view name) {
  for (const std::string& variable : environment)
    if (variable.starts_with(name) && variable.size() > name.size() && variable[name.size()] == '=')
      return variable.c_str() + name.size() + 1;
  return nullptr;
}

std::string_view word_of(wire::Verb verb) {
  switch (verb) {
    case wire::Verb::exec:
      return "exec";
    case wire::Verb::run:
      return "run";
    case wire::Verb::test:
    case wire::Verb::announce:
      return "test";
  }
  return "";
}

}  // namespace glidepod::apptainer
