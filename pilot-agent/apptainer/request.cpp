#include "pilot-agent/apptainer/request.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

#include "lib/base/file.hpp"
#include "pilot-agent/apptainer/environment.hpp"
#include "pilot-agent/apptainer/program.hpp"

namespace glidepod::apptainer {

namespace {

constexpr std::string_view k_launcher = "/condor_container_launcher.sh";
constexpr std::size_t k_longest_environment_file = std::size_t{1} << 20;

struct Home {
  std::string source;
  std::string destination;
};

Result<Home> home_of(const CommandLine& line, const Surroundings& surroundings) {
  if (!line.home.empty()) {
    const auto colon = line.home.find(':');
    Home home{line.home.substr(0, colon), line.home.substr(colon == std::string::npos ? 0 : colon + 1)};
    if (!home.source.starts_with('/') || !home.destination.starts_with('/'))
      return error("option --home: '{}' is not an absolute path", line.home);
    return home;
  }
  const char* own = find_variable(surroundings.environment, "HOME");
  std::string path = line.contain && line.work_directory.starts_with('/') ? line.work_directory
                     : own != nullptr && *own == '/'                      ? own
                                                                          : "/";
  return Home{path, path};
}

bool is_launcher(std::string_view bind) {
  const auto at = bind.find(':');
  return at != std::string_view::npos && bind.substr(at + 1) == k_launcher;
}

// The marker's path, as the launcher would have it from its environment: the container's.
Result<void> take_launcher_out(wire::Bind& bind) {
  std::erase_if(bind.binds, is_launcher);
  if (bind.argv.empty() || bind.argv[0] != k_launcher) return {};
  bind.argv.erase(bind.argv.begin());
  if (bind.argv.empty()) return error("{}: no command after {}", bind.image, k_launcher);
  const char* scratch = find_variable(bind.environment, "_CONDOR_SCRATCH_DIR");
  if (scratch == nullptr || *scratch != '/')
    return error("{}: the job has no absolute _CONDOR_SCRATCH_DIR, which {} needs", bind.image, k_launcher);
  bind.launched_marker = std::string(scratch) + "/.condor_container_launched";
  return {};
}

}  // namespace

Surroundings Surroundings::of_this_process() {
  Surroundings result;
  for (char** variable = environ; *variable != nullptr; ++variable)
    result.environment.emplace_back(*variable);
  if (char* cwd = ::getcwd(nullptr, 0)) {
    result.cwd = cwd;
    ::free(cwd);
  }
  // A directory that was removed, or lies outside of the root, has no name here or there.
  if (!result.cwd.starts_with('/')) result.cwd = "/";
  const mode_t mask = ::umask(022);
  ::umask(mask);
  result.umask = mask;
  for (int resource = 0; resource < static_cast<int>(RLIM_NLIMITS); ++resource) {
    rlimit limit{};
    if (::getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) == 0)
      result.limits.push_back({resource, limit.rlim_cur, limit.rlim_max});
  }
  return result;
}

Result<BindRequest> make_request(const CommandLine& line, const Surroundings& surroundings) {
  BindRequest request;
  wire::Bind& bind = request.bind;
  const Home home = TRY(home_of(line, surroundings));

  bind.verb = line.verb;
  bind.image = line.image;
  bind.argv = line.argv;
  bind.cwd = line.cwd.empty() ? surroundings.cwd : line.cwd;
  if (!bind.cwd.starts_with('/')) return error("option --pwd: '{}' is not an absolute path", bind.cwd);
  bind.home = home.destination;
  bind.work_directory = line.work_directory;
  bind.binds = line.binds;
  if (home.source != home.destination) bind.binds.push_back(home.source + ":" + home.destination);
  bind.umask = line.own_umask ? surroundings.umask : 022;
  bind.limits = surroundings.limits;

  EnvironmentRules rules{surroundings.environment,
                         {},
                         line.environment,
                         line.clean_environment,
                         bind.home,
                         bind.image,
                         bind.binds,
                         bind.verb};
  std::erase_if(rules.binds, is_launcher);
  for (const std::string& path : line.environment_files) {
    const std::string text = TRY(read_file(path, k_longest_environment_file).in("option --env-file"));
    for (std::string& variable : TRY(read_environment_text(text, path)))
      rules.files.push_back(std::move(variable));
  }
  bind.environment = container_environment(rules);
  TRY(take_launcher_out(bind));

  // HTCondor's probe of a container runtime. A job always has a work directory, and a path as its image is
  // for the agent to judge: rules may name an image of a registry for it.
  if (bind.verb == wire::Verb::exec && bind.work_directory.empty() && is_directory_image(bind.image)) {
    request.program = TRY(open_program(bind.image, bind.argv[0]));
    bind.program_attached = true;
  }
  return request;
}

}  // namespace glidepod::apptainer
