#include <algorithm>
#include <cctype>
#include <string_view>

#include "lib/base/json.hpp"
#include "lib/base/text.hpp"
#include "provisioner/backends/pods.hpp"

namespace glidepod::provisioner {

namespace {

std::string upper_case(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return std::toupper(c); });
  return result;
}

// The names in a value of STARTD_ATTRS: "$(STARTD_ATTRS) SiteName, Rack". None: there is more than names in
// it.
std::optional<List> attributes_in(std::string_view value) {
  List result;
  std::string word;
  for (const char c : std::string(value) + " ") {
    const bool in_name = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
    const bool of_macro = c == '$' || c == '(' || c == ')' || c == '.';
    if (in_name || of_macro) {
      word += c;
    } else if (c != ' ' && c != ',' && c != '\t' && c != '\n') {
      return std::nullopt;
    } else if (!word.empty()) {
      const bool macro = word.starts_with("$(") && word.ends_with(")");
      if (!macro && word.find_first_of("$().") != std::string::npos) return std::nullopt;
      if (!macro) result.push_back(word);
      word.clear();
    }
  }
  return result;
}

// HTCondor's settings that say nothing of a slot.
bool is_harmless(std::string_view name) {
  return name.starts_with("GLIDEPOD_") || name.starts_with("SEC_") || name.ends_with("_INTERVAL") ||
         name.ends_with("_DEBUG") || name.ends_with("_LOG") || name.ends_with("_LIFETIME");
}

// A folder or a file in which the pilot's HTCondor, or our agent, may find more configuration.
bool holds_configuration(std::string_view path) {
  if (path.starts_with("/etc/condor/tokens") || path.starts_with("/etc/condor/passwords")) return false;
  if (path == "/etc/glidepod" || path.ends_with("/agent.conf")) return true;
  const auto within = [path](std::string_view folder) {
    return path == folder || (path.starts_with(folder) && path[folder.size()] == '/');
  };
  return path == "/" || path == "/etc" || within("/etc/condor") || within("/usr") || within("/root");
}

// What the container's environment says; nothing: it says more than can be followed here.
std::optional<List> attributes_of(const Json& container, const Group& group) {
  if (!member(container, "envFrom").empty()) return std::nullopt;
  for (const auto& mount : member(container, "volumeMounts"))
    if (holds_configuration(text_of(mount, "mountPath"))) return std::nullopt;
  List result;
  std::vector<std::string> settings;
  for (const auto& variable : member(container, "env")) {
    const auto name = upper_case(text_of(variable, "name")), value = text_of(variable, "value");
    if (name == "GLIDEPOD_COMMAND" || name == "CONDOR_CONFIG") return std::nullopt;
    if ((name == "NUM_CPUS" && value != std::to_string(group.cpus)) ||
        (name == "MEMORY" && value != std::to_string(group.memory_mb)))
      return std::nullopt;
    if (!name.starts_with("_CONDOR_")) continue;
    const auto setting = name.substr(std::string_view("_CONDOR_").size());
    if (is_harmless(setting)) continue;
    settings.push_back(setting);
    if (!setting.ends_with("_ATTRS") && !setting.ends_with("_EXPRS")) continue;
    const auto names = attributes_in(value);
    if (!names || variable.contains("valueFrom")) return std::nullopt;
    result.insert(result.end(), names->begin(), names->end());
    settings.pop_back();
  }
  // Those that are left give the attributes their values.
  const auto is_value = [&result](const std::string& setting) {
    return std::ranges::any_of(result, [&](const std::string& name) { return upper_case(name) == setting; });
  };
  return std::ranges::all_of(settings, is_value) ? std::optional(result) : std::nullopt;
}

}  // namespace

PilotAttributes PodMaker::pilot_attributes() const {
  if (!has_payloads()) return {};
  if (const auto& told = settings_.pilot_attributes)
    return std::ranges::find(*told, "*") == told->end() ? PilotAttributes{true, *told} : PilotAttributes{};
  const Group group;
  auto pod = make(group, "pilot");
  if (!pod) return {};
  const auto more = attributes_of(pilot(pod.value()), group);
  return more ? PilotAttributes{true, *more} : PilotAttributes{};
}

}  // namespace glidepod::provisioner
