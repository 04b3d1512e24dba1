#include "glue/launch.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "glue/environment.hpp"
#include "glue/own_scripts.hpp"
#include "lib/base/child.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text.hpp"
#include "lib/wire/streams.hpp"

namespace glidepod::glue {

namespace {

// The job is the better victim when memory runs out: glue then lives to tell.
constexpr std::int64_t k_oom_score_raise = 100;
constexpr std::int64_t k_highest_oom_score = 1000;

std::string oom_score_adjustment() {
  const auto text = read_file("/proc/self/oom_score_adj");
  const auto own = parse_integer(text ? trim(text.value()) : "0");
  return std::to_string(std::min((own ? own.value() : 0) + k_oom_score_raise, k_highest_oom_score));
}

bool has_nul(const std::string& text) {
  return text.find('\0') != std::string::npos;
}

std::string hint_of(int code, bool present, std::string_view interpreter) {
  switch (code) {
    case ENOENT:
      if (interpreter.ends_with('\r'))
        return fmt::format(" (its first line ends as on Windows, so its interpreter is \"{}\\r\")",
                           one_line(interpreter.substr(0, interpreter.size() - 1)));
      if (!interpreter.empty())
        return fmt::format(" (its interpreter {} is not in the image)", one_line(interpreter));
      return present ? " (the file is there; is the loader of its C library in the image?)"
                     : " (is it in the image? for a script: is its interpreter?)";
    case EACCES:
      return " (is it executable for every user of the image?)";
    case ENOEXEC:
      return " (is it whole, and for this machine's architecture? for a script without #!: may its user read "
             "it, and is /bin/sh in the image?)";
    case E2BIG:
      return " (arguments and environment together are longer than the system allows)";
    default:
      return "";
  }
}

Error explain_program(const ChildReport& report, const wire::Launch& launch,
                      const std::vector<std::string>& candidates) {
  const auto fault = is_passing(report.code) ? wire::Fault::infrastructure : wire::Fault::user;
  const auto candidate = static_cast<std::size_t>(report.candidate);
  const bool present = report.candidate >= 0 && candidate < candidates.size();
  if (launch.runscript && !present)
    return error("the image has no {}: name the executable to run", fmt::join(candidates, ", no "))
        .with(fault);
  const std::string& program = present ? candidates[candidate] : launch.argv[0];
  const bool searched = !present && program.find('/') == std::string::npos && !launch.program_attached;
  const std::string where = searched ? " in any folder of PATH" : "";
  const Error plain(fmt::format("cannot execute {}{}", one_line(program), where), report.code);
  return error("{}{}", plain.message(), hint_of(report.code, present, report.interpreter.data())).with(fault);
}

// The first of a path's folders, "/" among them, that is closed to whoever is not its owner; none: empty. The
// path itself is not looked at.
std::string closed_above(const std::string& path) {
  for (auto slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    const std::string folder = path.substr(0, std::max<std::size_t>(slash, 1));
    struct stat info {};
    if (::stat(folder.c_str(), &info) == 0 ? (info.st_mode & S_IXOTH) == 0 : errno == EACCES) return folder;
  }
  return {};
}

Error explain_directory(const ChildReport& report, const wire::Launch& launch, const std::string& scratch) {
  const std::string what = fmt::format("cannot enter the job's working directory {}", one_line(launch.cwd));
  const Error plain(what, report.code);
  // HTCondor made the sandbox and asked for the links; the way there, and any other folder, is the image's.
  const auto link = std::ranges::find_if(
      launch.links, [&](const wire::Link& each) { return is_inside(launch.cwd, each.path); });
  const bool linked = link != launch.links.end();
  if (!linked && !is_inside(launch.cwd, scratch))
    return Error(plain.message() + " (is it in the image?)").with(wire::Fault::user);
  const auto closed = report.code == EACCES ? closed_above(linked ? link->path : scratch) : std::string();
  if (closed.empty()) return plain;
  return error("{} (the image's folder {} is closed to its users)", plain.message(), one_line(closed))
      .with(wire::Fault::user);
}

std::string_view name_of(Step step) {
  switch (step) {
    case Step::session:
      return "start a session";
    case Step::descriptors:
      return "place its descriptors";
    case Step::terminal:
      return "give it its terminal";
    case Step::bounding_set:
      return "empty the capability bounding set";
    case Step::user:
      return "become the job's user";
    case Step::capabilities:
      return "drop capabilities";
    case Step::no_new_privileges:
      return "set no_new_privs";
    case Step::directory:
      return "enter its working directory";
    case Step::limits:
      return "set its limits";
    case Step::marker:
      return "create the launch marker";
    case Step::filter:
      return "load the seccomp filter";
    case Step::program:
      return "execute its program";
  }
  return "?";
}

}  // namespace

User user_of(const wire::Launch& launch) {
  return {launch.uid, launch.gid, launch.groups};
}

Result<void> check_launch(const wire::Launch& launch, std::size_t fds) {
  constexpr auto none = static_cast<std::uint32_t>(-1);
  if (launch.job == 0) return error("a launch without a job number");
  if (fds != (launch.program_attached ? 4U : 3U)) return error("a launch without its descriptors");
  if (launch.argv.empty()) return error("a launch without a program");
  if (launch.uid == 0 || launch.gid == 0 || launch.uid == none || launch.gid == none ||
      std::ranges::count(launch.groups, 0U) != 0 || std::ranges::count(launch.groups, none) != 0)
    return error("a job never runs as root or in root's group");
  if (!launch.cwd.starts_with('/')) return error("the job's working directory is not an absolute path");
  if (!launch.launched_marker.empty() && !launch.launched_marker.starts_with('/'))
    return error("the launch marker is not an absolute path");
  for (const auto& limit : launch.limits)
    if (limit.resource < 0 || limit.resource >= RLIM_NLIMITS || limit.soft > limit.hard)
      return error("resource limit {}: {} (soft) and {} (hard) are no valid pair", limit.resource, limit.soft,
                   limit.hard);
  if (std::ranges::any_of(launch.argv, has_nul) || std::ranges::any_of(launch.environment, has_nul) ||
      has_nul(launch.cwd) || has_nul(launch.launched_marker))
    return error("a launch with a NUL byte in a text");
  return {};
}

Result<void> check_streams(const std::vector<Fd>& streams, const std::string& scratch) {
  const auto judged = wire::judge_streams(streams, {scratch, scratch, std::nullopt});
  if (!judged) return judged.error().with(wire::Fault::user);
  return {};
}

Error explain(const ChildReport& report, const wire::Launch& launch,
              const std::vector<std::string>& candidates, const std::string& scratch) {
  if (report.step == Step::program) return explain_program(report, launch, candidates);
  if (report.step == Step::directory) return explain_directory(report, launch, scratch);
  if (report.step == Step::marker && report.code == EEXIST)
    return error(
               "the job's folder has {}, which HTCondor makes itself, and which is no file that the job "
               "may write",
               one_line(launch.launched_marker))
        .with(wire::Fault::user);
  return Error(fmt::format("cannot launch the job: {}", name_of(report.step)), report.code);
}

Prepared prepare(const wire::Launch& launch, const std::array<int, 3>& stdio, int program,
                 const Filter& filter) {
  Prepared prepared;
  prepared.environment =
      merge_environment(environment_of_image(), launch.environment,
                        {.home = launch.home, .user_name = launch.user_name, .cwd = launch.cwd});
  ChildPlan& plan = prepared.plan;
  plan.stdio = stdio;
  plan.program_fd = program;
  plan.parent = ::getpid();
  plan.user = user_of(launch);
  plan.umask = launch.umask;
  plan.cwd = launch.cwd;
  plan.marker = launch.launched_marker;
  plan.limits = launch.limits;
  plan.argv = exec_pointers(launch.argv);
  plan.environment = exec_pointers(prepared.environment);
  plan.own_names = launch.runscript;
  if (launch.runscript)
    plan.candidates = runscripts(launch.environment);
  else
    plan.candidates = program_candidates(launch.argv[0], variable(prepared.environment, "PATH"));
  plan.oom_score_adjustment = oom_score_adjustment();
  plan.filter = &filter;
  return prepared;
}

Result<Pipe> report_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return Error::system("pipe");
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

Result<Launched> start(const wire::Launch& launch, const std::vector<Fd>& fds, const Filter& filter,
                       const Fd& report) {
  Prepared prepared = prepare(launch, {fds[0].get(), fds[1].get(), fds[2].get()},
                              launch.program_attached ? fds[3].get() : -1, filter);
  prepared.plan.report_fd = report.get();
  const pid_t pid = start_child(prepared.plan);
  if (pid < 0) return Error::system("fork");
  return Launched{pid, std::move(prepared.plan.candidates)};
}

}  // namespace glidepod::glue
