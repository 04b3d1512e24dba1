#include "pilot-agent/bind_plan.hpp"

#include <algorithm>
#include <filesystem>

#include "lib/base/text.hpp"

namespace glidepod::agent {
namespace {

constexpr std::string_view k_launcher_script = "/condor_container_launcher.sh";

std::string normal(std::string_view path) {
  auto result = std::filesystem::path(path).lexically_normal().string();
  while (result.size() > 1 && result.ends_with('/')) result.pop_back();
  return result;
}

}  // namespace

bool inside(std::string_view path, std::string_view folder) {
  return path == folder ||
         (path.starts_with(folder) && (folder.ends_with('/') || path[folder.size()] == '/'));
}

Result<std::vector<wire::Link>> plan_binds(const std::vector<std::string>& binds, const Shared& shared) {
  std::vector<wire::Link> links;
  const std::string scratch = normal(shared.scratch);
  for (const std::string& bind : binds) {
    const auto parts = split(bind, ':');
    const std::string source = normal(parts[0]);
    const std::string target = parts.size() > 1 && !parts[1].empty() ? normal(parts[1]) : source;
    if (target == k_launcher_script) continue;
    if (!source.starts_with('/') || !target.starts_with('/'))
      return error("bind {}: both paths must begin with /", bind);
    const bool same = source == target;
    if (same && std::ranges::any_of(shared.paths, [&](const auto& path) { return inside(source, path); }))
      continue;
    if (!inside(source, scratch))
      return error(
          "bind {}: not available in payload containers, which share {} with the pilot and nothing else",
          bind, scratch);
    if (same) continue;
    if (target == "/" || inside(target, scratch))
      return error("bind {}: {} cannot be replaced", bind, target);
    links.push_back({target, source});
  }
  return links;
}

Result<wire::Launch> plan_launch(const wire::Bind& bind, const Caller& caller, const Shared& shared) {
  if (caller.uid == 0)
    return error("root cannot run anything in a payload container; call this as the slot's user");
  wire::Launch launch;
  launch.argv = bind.argv;
  launch.environment = bind.environment;
  launch.cwd = bind.cwd;
  launch.home = bind.home;
  launch.user_name = caller.name;
  launch.uid = caller.uid;
  launch.gid = caller.gid;
  launch.groups = caller.groups;
  launch.umask = bind.umask;
  launch.limits = bind.limits;
  launch.launched_marker = bind.launched_marker;
  launch.program_attached = bind.program_attached;
  launch.links = TRY(plan_binds(bind.binds, shared));
  const bool own_command = bind.verb == wire::Verb::run && !bind.program_attached;
  if (bind.verb != wire::Verb::test && !own_command && bind.argv.empty()) return error("no command given");
  return launch;
}

}  // namespace glidepod::agent
