#include "tests/glue/stand_ins.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <map>

#include "glue/events.hpp"
#include "glue/image.hpp"
#include "glue/launch.hpp"
#include "glue/links.hpp"
#include "glue/memory.hpp"
#include "glue/reports.hpp"
#include "glue/seccomp.hpp"
#include "glue/shm.hpp"

namespace glidepod::glue::stand_ins {

Scene scene;

namespace {

pid_t last_pid = 100;
std::map<int, pid_t> opened;

Fd begin_child(const User& user, std::vector<std::string> folders) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) ::abort();
  scene.begun.push_back({++last_pid, user, std::move(folders), Fd(ends[1])});
  return Fd(ends[0]);
}

std::optional<Worker> begin_worker(const User& user, const std::vector<std::string>& folders) {
  if (scene.no_child) return std::nullopt;
  Fd report = begin_child(user, folders);
  return Worker(last_pid, std::move(report));
}

}  // namespace

void Begun::write_bytes(const void* bytes, std::size_t size) const {
  if (::write(report.get(), bytes, size) != static_cast<ssize_t>(size)) ::abort();
}

ProcessStat process(pid_t pid, char state) {
  return {.pid = pid, .parent = 1, .state = state, .threads = 1, .start_time = 1};
}

void pass(Loop& loop, Milliseconds time) {
  scene.now += time;
  loop.run_once(Milliseconds(0)).value();
}

}  // namespace glidepod::glue::stand_ins

using glidepod::glue::stand_ins::scene;

// Time that passes only in pass(); the time of day is a thousand seconds later.
extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
  if (clock != CLOCK_MONOTONIC && clock != CLOCK_REALTIME)
    return static_cast<int>(::syscall(SYS_clock_gettime, clock, now));
  const auto ms = scene.now.count() + (clock == CLOCK_REALTIME ? 1'000'000 : 0);
  *now = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1'000'000};
  return 0;
}

namespace glidepod::glue {

using stand_ins::begin_child;
using stand_ins::begin_worker;
using stand_ins::last_pid;
using stand_ins::opened;

std::vector<ProcessStat> own_descendants() {
  return scene.processes;
}

std::vector<pid_t> own_children() {
  return {};
}

Children reap(std::size_t, const Reaped&) {
  return Children::none;
}

Fd open_process(const ProcessStat& stat) {
  Fd fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  opened[fd.get()] = stat.pid;
  return fd;
}

bool send_signal(const Fd& fd, int number) {
  scene.sent.emplace_back(opened[fd.get()], number);
  return true;
}

void signal_child(pid_t pid, int number) {
  scene.sent.emplace_back(pid, number);
}

std::optional<uid_t> owner_of_any(const std::string&) {
  return scene.owner;
}

bool may_have_files(const User&, const std::vector<std::string>&) {
  return scene.has_files;
}

std::optional<Worker> start_remover(const User& user, const std::vector<std::string>& folders) {
  return begin_worker(user, folders);
}

std::optional<Worker> start_counter(const User& user, const std::vector<std::string>& folders, Milliseconds) {
  return begin_worker(user, folders);
}

Result<OpenedSession> open_session(wire::Launch launch, const wire::SessionRequest& request,
                                   const std::vector<Fd>&, const Filter&) {
  if (scene.no_child) return Error("fork", EAGAIN);
  OpenedSession session;
  session.report = begin_child(user_of(launch), {});
  session.supervisor = last_pid;
  if (scene.no_watch) session.report.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (request.terminal) session.terminal.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  return session;
}

Error explain_session(const ChildReport&, const OpenedSession&, const std::string& scratch) {
  return error("no shell, nor in {}", scratch).with(wire::Fault::user);
}

User user_of(const wire::Launch& launch) {
  return {launch.uid, launch.gid, launch.groups};
}

wire::Fault fault_of(const Error& error) {
  const auto* fault = error.fact<wire::Fault>();
  return fault ? *fault : wire::Fault::infrastructure;
}

Error explain(const ChildReport& report, const wire::Launch&, const std::vector<std::string>& candidates,
              const std::string& scratch) {
  return Error(fmt::format("{} is not in {}", candidates.at(0), scratch), report.code);
}

void Image::prepare(const wire::Launch&) {}

wire::Launch Image::by_its_scripts(const wire::Launch& launch) const {
  return launch;
}

Result<void> Links::make(const std::vector<wire::Link>& links, const std::string&) {
  if (scene.no_links) return Error("make a link", EROFS);
  scene.links += static_cast<int>(links.size());
  for (const auto& link : links) made_.push_back({link.path, link.target});
  return {};
}

void Links::undo() {
  scene.links -= static_cast<int>(made_.size());
  made_.clear();
}

Result<Pipe> report_pipe() {
  Fd report = begin_child({}, {});
  // Its writer is the child.
  return Pipe{std::move(report), Fd(::dup(scene.last().report.get()))};
}

Result<Launched> start(const wire::Launch& launch, const std::vector<Fd>&, const Filter&, const Fd&) {
  if (scene.no_child) return Error("fork", EAGAIN);
  scene.last().user = user_of(launch);
  return Launched{scene.last().pid, {launch.argv.at(0)}};
}

ControlGroup::ControlGroup(const std::string&) {}

MemoryState ControlGroup::read() const {
  return {.oom_kills = scene.oom_kills};
}

MemoryUse use_between(const MemoryState& before, const MemoryState& after) {
  return {.oom_kills = static_cast<std::uint32_t>(after.oom_kills - before.oom_kills),
          .limit_kib = 11,
          .peak_kib = 12};
}

Result<Filter> Filter::build() {
  return Filter();
}

Record read_record(const Fd& pipe, void* record, std::size_t size) {
  const ssize_t got = ::read(pipe.get(), record, size);
  if (got < 0) return Record::none;
  return got == static_cast<ssize_t>(size) ? Record::whole : Record::end;
}

void say(std::string_view line) {
  scene.log.emplace_back(line);
}

std::string value(std::string_view text) {
  return "\"" + std::string(text) + "\"";
}

}  // namespace glidepod::glue
