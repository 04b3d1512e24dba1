#include "glue/environment.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "lib/base/child.hpp"
#include "lib/base/text.hpp"

namespace glidepod::glue {

char** of_the_image = nullptr;

namespace {

constexpr std::string_view k_default_path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
constexpr std::string_view k_service_host = "_SERVICE_HOST";
// How apptainer passes what extends the image's PATH; the job does not see these names.
constexpr std::string_view k_prepend_path = "SING_USER_DEFINED_PREPEND_PATH";
constexpr std::string_view k_append_path = "SING_USER_DEFINED_APPEND_PATH";

using Names = std::unordered_set<std::string_view>;

std::string_view name_of(std::string_view entry) {
  return entry.substr(0, entry.find('='));
}

// "80_TCP", "80_TCP_ADDR": what follows SERVICE_PORT_ in the variables of a service.
bool is_port_detail(std::string_view text) {
  const auto digits = text.find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string_view::npos) return false;
  text.remove_prefix(digits);
  return text.starts_with("_TCP") || text.starts_with("_UDP") || text.starts_with("_SCTP");
}

// Only names that belong to a service that is really there are taken away: MYSQL_PORT alone is the image's
// own.
bool is_of_a_service(std::string_view name, const Names& services) {
  for (auto at = name.find('_'); at != std::string_view::npos; at = name.find('_', at + 1)) {
    if (!services.contains(name.substr(0, at))) continue;
    const auto rest = name.substr(at + 1);
    if (rest == "PORT" || rest == "SERVICE_HOST" || rest == "SERVICE_PORT" ||
        rest.starts_with("SERVICE_PORT_"))
      return true;
    if (rest.starts_with("PORT_") && is_port_detail(rest.substr(5))) return true;
  }
  return false;
}

Names services_in(const char* const* own) {
  Names names, services;
  for (const char* const* entry = own; *entry != nullptr; ++entry) names.insert(name_of(*entry));
  for (const auto name : names) {
    if (!name.ends_with(k_service_host)) continue;
    const auto service = name.substr(0, name.size() - k_service_host.size());
    if (names.contains(std::string(service) + "_SERVICE_PORT")) services.insert(service);
  }
  return services;
}

std::string extended(std::string_view path, std::string_view before, std::string_view after) {
  std::string result(before);
  for (const std::string_view part : {path, after})
    if (!part.empty()) result.append(result.empty() ? "" : ":").append(part);
  return result;
}

}  // namespace

const char* const* environment_of_image() {
  return of_the_image != nullptr ? of_the_image : environ;
}

void lend_environment(std::vector<std::string> entries) {
  static std::vector<std::string> lent;
  static std::vector<char*> pointers;
  lent = std::move(entries);
  pointers = exec_pointers(lent);
  of_the_image = pointers.data();
}

std::vector<std::string> merge_environment(const char* const* own, const std::vector<std::string>& job,
                                           const Identity& identity) {
  Names given;
  for (const auto& entry : job) given.insert(name_of(entry));
  const Names services = services_in(own);
  std::vector<std::string> result;
  std::string_view path = k_default_path;
  const auto replaced = [&](std::string_view name) {
    // The image's values of these speak of another user (root) and another folder.
    return (name == "HOME" && !identity.home.empty()) || name == "USER" || name == "LOGNAME" ||
           name == "PWD" || name == "OLDPWD";
  };
  for (const char* const* entry = own; *entry != nullptr; ++entry) {
    const auto name = name_of(*entry);
    if (given.contains(name) || replaced(name) || name.starts_with("GLIDEPOD_") ||
        name.starts_with("KUBERNETES_") || is_of_a_service(name, services))
      continue;
    if (name == "PATH")
      path = std::string_view(*entry).substr(sizeof "PATH=" - 1);
    else
      result.emplace_back(*entry);
  }
  std::ranges::copy_if(job, std::back_inserter(result), [](const std::string& entry) {
    return name_of(entry) != k_prepend_path && name_of(entry) != k_append_path;
  });
  const auto add = [&](std::string_view name, std::string_view value) {
    if (!value.empty() && !given.contains(name))
      result.push_back(std::string(name).append("=").append(value));
  };
  add("PATH", extended(path, variable(job, k_prepend_path), variable(job, k_append_path)));
  add("HOME", identity.home);
  add("USER", identity.user_name);
  add("LOGNAME", identity.user_name);
  add("PWD", identity.cwd);
  return result;
}

std::string_view variable(const std::vector<std::string>& environment, std::string_view name) {
  for (const std::string_view entry : environment)
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return entry.substr(name.size() + 1);
  return {};
}

std::vector<std::string> program_candidates(const std::string& program, std::string_view path) {
  if (program.find('/') != std::string::npos) return {program};
  std::vector<std::string> result;
  for (const auto& folder : split(path.empty() ? k_default_path : path, ':'))
    result.push_back(fmt::format("{}/{}", folder.empty() ? "." : folder, program));
  return result;
}

}  // namespace glidepod::glue
