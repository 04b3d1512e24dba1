#include "glue/own_scripts.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "glue/environment.hpp"

namespace glidepod::glue {
namespace {

constexpr std::array<const char*, 2> k_shells = {"/bin/bash", "/bin/sh"};
// Shells do not let these be set.
constexpr std::array<std::string_view, 7> k_of_shells = {"UID",       "EUID",          "PPID",  "BASHOPTS",
                                                         "SHELLOPTS", "BASH_VERSINFO", "GROUPS"};
// How apptainer passes what extends the PATH that the scripts have made.
constexpr std::string_view k_prepend_path = "SING_USER_DEFINED_PREPEND_PATH";
constexpr std::string_view k_append_path = "SING_USER_DEFINED_APPEND_PATH";

// In a function, so that a script's own `set --` and `shift` do not touch the job's arguments.
constexpr std::string_view k_read_scripts = R"(__glidepod_read() {
for __glidepod_script in /.singularity.d/env/*.sh; do
if [ -f "$__glidepod_script" ]; then . "$__glidepod_script"; fi
done
}
__glidepod_read
unset __glidepod_script
unset -f __glidepod_read
)";

bool is_name(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !name.empty() && !digit(name[0]) &&
         std::ranges::all_of(name, [&](char c) { return letter(c) || digit(c); }) &&
         std::ranges::find(k_of_shells, name) == k_of_shells.end();
}

}  // namespace

std::vector<std::string> runscripts(const std::vector<std::string>& environment) {
  const auto app = variable(environment, k_app);
  if (app.empty()) return {k_runscripts.begin(), k_runscripts.end()};
  return {fmt::format("/scif/apps/{}/scif/runscript", app)};
}

std::string shell_of(const Fd& root) {
  for (const char* shell : k_shells) {
    // Looked at only, so it may lie on whatever is mounted there.
    struct stat info {};
    if (::fstatat(root.get(), shell + 1, &info, 0) == 0 && S_ISREG(info.st_mode) &&
        (info.st_mode & 0111) != 0)
      return shell;
  }
  return {};
}

wire::Launch through_shell(const wire::Launch& launch, const std::string& shell) {
  wire::Launch result = launch;
  result.environment.clear();
  std::string script(k_read_scripts);
  std::size_t kept = 0;
  for (const std::string_view entry : launch.environment) {
    const auto name = entry.substr(0, entry.find('='));
    // The scripts choose by the app.
    if (!is_name(name) || name.size() == entry.size() || name == k_app) {
      result.environment.emplace_back(entry);
      continue;
    }
    // The scripts do not see it: where they set it too, the job's value counts.
    const auto hidden = fmt::format("__GLIDEPOD_{}", kept++);
    result.environment.push_back(fmt::format("{}={}", hidden, entry.substr(name.size() + 1)));
    if (name == k_prepend_path)
      script += fmt::format("export PATH=\"${}${{PATH:+:$PATH}}\"\n", hidden);
    else if (name == k_append_path)
      script += fmt::format("export PATH=\"${{PATH:+$PATH:}}${}\"\n", hidden);
    else
      script += fmt::format("export {}=\"${}\"\n", name, hidden);
    script += fmt::format("unset {}\n", hidden);
  }
  result.argv = {shell, "-c", std::move(script), shell};
  auto arguments = launch.argv.begin();
  if (launch.runscript) {
    if (arguments != launch.argv.end()) ++arguments;  // the first of k_runscripts
    if (variable(launch.environment, k_app).empty())
      for (const char* program : k_runscripts)
        result.argv[2] += fmt::format("if [ -x {0} ]; then exec {0} \"$@\"; fi\n", program);
    else
      result.argv[2] += fmt::format("exec \"/scif/apps/${}/scif/runscript\" \"$@\"\n", k_app);
    result.runscript = false;
  } else {
    result.argv[2] += "exec \"$@\"\n";
  }
  result.argv.insert(result.argv.end(), arguments, launch.argv.end());
  return result;
}

}  // namespace glidepod::glue
