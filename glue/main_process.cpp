#include "glue/main_process.hpp"

#include <signal.h>
#include <time.h>

#include <algorithm>
#include <utility>

#include "glue/processes.hpp"
#include "glue/reports.hpp"

namespace glidepod::glue {

namespace {

std::int64_t microseconds(const timeval& time) {
  return time.tv_sec * 1'000'000L + time.tv_usec;
}

}  // namespace

std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * 1'000'000'000L + now.tv_nsec;
}

MainProcess::MainProcess(Loop& loop, wire::Launch launch, Counting::Limits limits, const std::string& scratch,
                         JobSessions::Tell tell)
    : loop_(loop),
      launch_(std::move(launch)),
      scratch_(scratch),
      suspension_(loop),
      counting_(loop, user_of(launch_), limits),
      sessions_(loop, launch_.job, scratch, std::move(tell)) {
  account_.job = launch_.job;
}

Result<void> MainProcess::start(Image& image, const std::vector<Fd>& fds, const Filter& filter,
                                const ControlGroup& memory, std::function<void()> on_report) {
  image.prepare(launch_);
  TRY(links_.make(launch_.links, scratch_));
  memory_ = memory.read();
  account_.started_ns = now_ns();
  // Watched before there is a child: one that could not be watched would run unseen.
  auto pipe = TRY(report_pipe());
  TRY(loop_.watch(pipe.read.get(), EPOLLIN,
                  [on_report = std::move(on_report)](std::uint32_t) { on_report(); }));
  report_ = std::move(pipe.read);
  child_ = TRY(glue::start(image.by_its_scripts(launch_), fds, filter, pipe.write));
  return {};
}

std::optional<Result<void>> MainProcess::read_report() {
  ChildReport report;
  const Record told = read_record(report_, &report);
  if (told == Record::none) return std::nullopt;
  close_report();
  if (told == Record::whole) return explain(report, launch_, child_.candidates, scratch_);
  return Result<void>();
}

void MainProcess::close_report() {
  loop_.forget(report_.get());
  report_.reset();
}

Error MainProcess::give_up() {
  close_report();
  return error("the job's process hangs in the kernel: it neither starts its program nor ends");
}

void MainProcess::signal(int number) {
  switch (number) {
    case SIGSTOP:
    case SIGTSTP:
    case SIGCONT:
      return suspension_.order(number);
    default:
      told_ = true;
      signal_child(child_.pid, number);  // never kill(-1)
  }
}

void MainProcess::terminate() {
  if (told_) return;
  signal_child(child_.pid, SIGTERM);
  suspension_.wake();
}

pid_t MainProcess::hand_over() {
  suspension_.stop();
  sessions_.forget();
  return counting_.hand_over();
}

bool MainProcess::reaped(pid_t pid, int status, const rusage& usage) {
  if (counting_.ended(pid)) return false;
  account_.user_microseconds += microseconds(usage.ru_utime);
  account_.system_microseconds += microseconds(usage.ru_stime);
  account_.max_rss_kib = std::max<std::int64_t>(account_.max_rss_kib, usage.ru_maxrss);
  sessions_.reaped(pid);
  if (pid != child_.pid || status_) return true;  // one that was given its pid since
  account_.ended_ns = now_ns();
  status_ = ExitStatus::from_wait(status);
  return true;
}

wire::Exited MainProcess::exited(const MemoryState& memory) const {
  const MemoryUse use = use_between(memory_, memory);
  return {.job = launch_.job,
          .status = *status_,
          .ended_ns = account_.ended_ns,
          .oom_kills = use.oom_kills,
          .memory_limit_kib = use.limit_kib,
          .memory_peak_kib = use.peak_kib,
          .max_rss_kib = account_.max_rss_kib};
}

}  // namespace glidepod::glue
