// What glue's server has for processes, in the place of the real thing.
#include <signal.h>

#include <tuple>

#include "glue/launch.hpp"
#include "glue/processes.hpp"
#include "glue/session.hpp"
#include "glue/shm.hpp"
#include "glue/worker.hpp"
#include "tests/glue/simulate/world.hpp"

namespace glidepod::glue {

using simulate::Process;
using simulate::Tree;
using simulate::World;

namespace {

Error no_resources() {
  return Error("fork", EAGAIN);
}

bool is_short(World& world) {
  return world.random.chance(world.weather.no_resources);
}

}  // namespace

std::vector<ProcessStat> own_descendants() {
  World& world = World::current();
  world.pass_call();
  world.check(world.held == 0, "nothing is kept back while others are looked for");
  world.truth.looks_for_all();
  std::vector<ProcessStat> result;
  for (const Process* process : world.tree.descendants()) {
    ProcessStat stat;
    stat.pid = process->pid;
    stat.parent = process->parent;
    stat.threads = 1;
    stat.start_time = process->start;
    stat.state = process->state == Process::State::zombie    ? 'Z'
                 : process->stuck                            ? 'D'
                 : process->state == Process::State::stopped ? 'T'
                 : world.random.chance(500)                  ? 'R'
                                                             : 'S';
    result.push_back(stat);
  }
  // To read them all takes a while; who is reborn meanwhile has got away.
  world.pass(world.micro(100, 3000));
  return result;
}

std::vector<pid_t> own_children() {
  World& world = World::current();
  world.pass_call();
  std::vector<pid_t> result;
  for (const Process* child : world.tree.children(Tree::k_glue)) result.push_back(child->pid);
  return result;
}

void signal_child(pid_t pid, int number) {
  World& world = World::current();
  world.pass_call();
  Process* process = world.tree.find(pid);
  world.check(process != nullptr && process->parent == Tree::k_glue,
              "a signal by pid is for a child that was not reaped");
  world.truth.strikes(*process, number);
  world.tree.signal(*process, number);
}

Fd open_process(const ProcessStat& stat) {
  World& world = World::current();
  world.pass_call();
  if (world.tree.find(stat.pid, stat.start_time) == nullptr) return Fd();
  const int fd = world.new_fd();
  world.opened = {{fd, {stat.pid, stat.start_time}}};
  return Fd(fd);
}

bool send_signal(const Fd& fd, int number) {
  World& world = World::current();
  world.pass_call();
  if (!fd) return false;
  const auto found = world.opened.find(fd.get());
  world.check(found != world.opened.end(), "the process is open");
  Process* process = world.tree.find(found->second.first, found->second.second);
  if (process == nullptr) return false;
  world.note(fmt::format("   glue signals {} to {}", number, process->pid));
  world.check(world.tree.descends(*process), "a signal is for a process of the job");
  if (number == SIGKILL) world.truth.kills_all();
  world.truth.strikes(*process, number);
  world.tree.signal(*process, number);
  return true;
}

Children reap(std::size_t most, const Reaped& reaped) {
  World& world = World::current();
  // There are fewer than in the world, and as many turns.
  if (world.weather.slow_reaping) most = 2;
  world.truth.account.reaped_all(true);
  for (std::size_t count = 0; count < most; ++count) {
    world.pass_call();
    const auto children = world.tree.children(Tree::k_glue);
    if (children.empty()) return Children::none;
    const auto zombie = std::ranges::find(children, Process::State::zombie, &Process::state);
    if (zombie == children.end()) return Children::living;
    const auto [pid, status, kind] = std::tuple((*zombie)->pid, (*zombie)->status, (*zombie)->kind);
    world.tree.erase(pid);
    const rusage usage = world.usage();
    if (kind == Process::Kind::job || kind == Process::Kind::supervisor) world.truth.account.reaped(usage);
    reaped(pid, status, usage);
  }
  world.truth.account.reaped_all(false);
  return Children::unknown;
}

User user_of(const wire::Launch& launch) {
  return {launch.uid, launch.gid, launch.groups};
}

Result<void> check_streams(const std::vector<Fd>& streams, const std::string&) {
  if (streams.size() == 2) return Error("a stream that may not be").with(wire::Fault::user);
  return {};
}

Result<void> check_launch(const wire::Launch&, std::size_t fds) {
  if (fds == 1) return Error("a launch that may not be").with(wire::Fault::user);
  return {};
}

Error explain(const ChildReport&, const wire::Launch&, const std::vector<std::string>&, const std::string&) {
  return Error("the child said so").with(wire::Fault::user);
}

void Image::prepare(const wire::Launch& launch) {
  World::current().pass_call();
  World::current().truth.starts(launch.job);
}

wire::Launch Image::by_its_scripts(const wire::Launch& launch) const {
  return launch;
}

Result<Pipe> report_pipe() {
  World& world = World::current();
  world.pass_call();
  if (is_short(world)) return no_resources();
  const int fd = world.open_pipe();
  return Pipe{Fd(fd), Fd(fd + 1)};
}

Result<Launched> start(const wire::Launch& launch, const std::vector<Fd>&, const Filter&, const Fd& report) {
  World& world = World::current();
  world.pass_call();
  if (is_short(world)) return no_resources();
  Process& main = world.tree.fork(Tree::k_glue, Process::Kind::job);
  world.truth.forked(main.pid);
  main.reports_to = report.get() - 1;
  world.note(fmt::format("job {} has process {}", launch.job, main.pid));
  world.begin_job(main);
  return Launched{main.pid, {}};
}

Result<void> check_session(const wire::OpenSession&, std::size_t fds) {
  if (fds == 1) return Error("a session that may not be");
  return {};
}

wire::Launch launch_of_session(const wire::Launch& job, const wire::SessionRequest&) {
  return job;
}

Result<OpenedSession> open_session(wire::Launch, const wire::SessionRequest& request, const std::vector<Fd>&,
                                   const Filter&) {
  World& world = World::current();
  world.pass_call();
  if (is_short(world)) return no_resources();
  OpenedSession session;
  const int fd = world.open_pipe();
  Process& supervisor = world.tree.fork(Tree::k_glue, Process::Kind::supervisor);
  supervisor.reports_to = fd;
  session.supervisor = supervisor.pid;
  session.report.reset(fd);
  const auto id = std::stoull(request.command);
  world.truth.sessions.opens(id, supervisor);
  world.begin_session(supervisor, id);
  return session;
}

Error explain_session(const ChildReport&, const OpenedSession&, const std::string&) {
  return Error("no shell").with(wire::Fault::user);
}

bool may_have_left(const User& user, const std::vector<std::string>&) {
  World& world = World::current();
  world.pass_call();
  return user.uid == 0 || world.files + world.stubborn_files > 0 ||
         world.random.chance(world.weather.files / 8);
}

bool may_have_files(const User& user, const std::vector<std::string>& folders) {
  const bool may = may_have_left(user, folders);
  if (!may) World::current().truth.workers.nothing_to_count();
  return may;
}

std::optional<Worker> start_cleaner(const User& user, const std::vector<std::string>&, bool as_root,
                                    Milliseconds limit) {
  World& world = World::current();
  world.pass_call();
  world.truth.account.looks_on();
  if (!as_root) world.truth.account.cleaning_begins();
  if (is_short(world)) {
    world.truth.may_be_unclean();
    return std::nullopt;
  }
  const int fd = world.open_pipe();
  Process& process = world.tree.fork(Tree::k_glue, Process::Kind::cleaner);
  process.reports_to = fd;
  world.truth.workers.cleaner_begins(process, as_root, user, limit);
  world.begin_cleaner(process, as_root);
  return Worker(process.pid, Fd(fd));
}

std::optional<uid_t> owner_of_any(const std::string&) {
  World& world = World::current();
  world.pass_call();
  return world.shm_files > 0 ? std::optional<uid_t>(5001) : std::nullopt;
}

std::optional<Worker> start_remover(const User& user, const std::vector<std::string>&) {
  World& world = World::current();
  world.pass_call();
  world.truth.workers.remover_begins(user);
  if (is_short(world)) return std::nullopt;
  const int fd = world.open_pipe();
  Process& process = world.tree.fork(Tree::k_glue, Process::Kind::remover);
  process.reports_to = fd;
  world.begin_remover(process);
  return Worker(process.pid, Fd(fd));
}

std::optional<Worker> start_counter(const User&, const std::vector<std::string>&, Milliseconds) {
  World& world = World::current();
  world.pass_call();
  world.truth.workers.count_begins();
  if (is_short(world)) return std::nullopt;
  const int fd = world.open_pipe();
  Process& process = world.tree.fork(Tree::k_glue, Process::Kind::counter);
  process.reports_to = fd;
  world.begin_counter(process);
  return Worker(process.pid, Fd(fd));
}

}  // namespace glidepod::glue
