#include "lib/condor/command.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "lib/base/file.hpp"
#include "lib/base/text.hpp"

namespace glidepod::condor {

namespace {

constexpr std::size_t k_most_errors = 4096;

struct Pipe {
  Fd read_end, write_end;
};

// Makes only our end non-blocking. The flag belongs to that end of the pipe, so the program's end still
// blocks.
Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error::system("pipe");
  Pipe pipe{Fd(ends[0]), Fd(ends[1])};
  if (::fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) return Error::system("pipe");
  return pipe;
}

// The program gets all of its input at once, in a file in memory, so that nothing has to feed a pipe.
Result<Fd> make_input(const std::string& text) {
  if (text.empty()) return open_file("/dev/null", O_RDONLY);
  Fd file(::memfd_create("input", MFD_CLOEXEC));
  if (!file.valid()) return Error::system("memfd_create");
  TRY(write_all(file, text));
  if (::lseek(file.get(), 0, SEEK_SET) != 0) return Error::system("lseek");
  return file;
}

// HTCondor's tools say on their first line that something failed, and on the next line what. Then they
// explain how a pool works.
std::string all_lines(std::string_view text) {
  std::string result, last;
  for (const auto& line : split(text.substr(0, text.find("\nExtra Info:")), '\n')) {
    // condor_advertise repeats its message for each ad.
    if (trim(line).empty() || line == std::exchange(last, line)) continue;
    result.append(result.empty() ? "" : "; ").append(trim(line));
  }
  return result;
}

}  // namespace

struct ChildRunner::Job {
  Command command;
  std::function<void(std::string_view)> on_output;
  std::function<void(CommandEnd)> on_end;
  std::optional<Child> child;
  Fd out, err;
  std::string errors;
  bool late = false;
  Loop::TimerId timer = 0;
};

ChildRunner::~ChildRunner() {
  for (const auto& job : jobs_) {
    if (job->timer) loop_.cancel(job->timer);
    if (!job->child) continue;
    forget(*job);
    if (job->child->signal(SIGKILL).ok()) static_cast<void>(job->child->wait());
  }
}

Result<void> ChildRunner::start(const std::shared_ptr<Job>& job) {
  auto out = TRY(make_pipe());
  auto err = TRY(make_pipe());
  const auto input = TRY(make_input(job->command.input));
  job->child = TRY(Child::spawn({.argv = job->command.argv,
                                 .environment = {},
                                 .stdin_fd = input.get(),
                                 .stdout_fd = out.write_end.get(),
                                 .stderr_fd = err.write_end.get(),
                                 .parent_death_signal = SIGKILL}));
  job->out = std::move(out.read_end);
  job->err = std::move(err.read_end);
  TRY(loop_.watch(job->out.get(), EPOLLIN,
                  [this, job](std::uint32_t) { read_output(*job, Reading::piece); }));
  TRY(loop_.watch(job->err.get(), EPOLLIN, [this, job](std::uint32_t) { read_errors(*job); }));
  TRY(loop_.watch(job->child->pidfd().get(), EPOLLIN, [this, job](std::uint32_t) { finish(job); }));
  job->timer = loop_.after(job->command.time_limit, [job] {
    job->timer = 0;
    job->late = true;
    // The pidfd tells of its end, as of any other.
    static_cast<void>(job->child->signal(SIGKILL));
  });
  return {};
}

void ChildRunner::run(Command command, std::function<void(std::string_view)> on_output,
                      std::function<void(CommandEnd)> on_end) {
  auto job = std::make_shared<Job>();
  job->command = std::move(command);
  job->on_output = std::move(on_output);
  job->on_end = std::move(on_end);
  jobs_.push_back(job);
  const auto started = start(job);
  if (started) return;
  if (job->child) {
    forget(*job);
    if (job->child->signal(SIGKILL).ok()) static_cast<void>(job->child->wait());
    job->child.reset();
  }
  job->timer = loop_.after(Milliseconds(0), [this, job, failure = started.error()] {
    std::erase(jobs_, job);
    job->on_end(failure);
  });
}

void ChildRunner::forget(Job& job) {
  for (const Fd* fd : std::initializer_list<const Fd*>{&job.out, &job.err, &job.child->pidfd()})
    if (fd->valid()) loop_.forget(fd->get());
}

// Reads one piece in each turn of the loop while the program runs. A program that writes as fast as this
// reads must not keep the loop busy.
void ChildRunner::read_output(Job& job, Reading reading) {
  std::array<char, 65536> buffer;
  while (true) {
    const auto got = ::read(job.out.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    // The program's end closes the pipe too; the pidfd tells of that end.
    if (got == 0) loop_.forget(job.out.get());
    if (got <= 0) return;
    job.on_output({buffer.data(), static_cast<std::size_t>(got)});
    if (reading == Reading::piece) return;
  }
}

// Reads all that the program writes to stderr, so that it does not block, but keeps only the beginning.
void ChildRunner::read_errors(Job& job) {
  std::array<char, 4096> buffer;
  while (true) {
    const auto got = ::read(job.err.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) loop_.forget(job.err.get());
    if (got <= 0) return;
    job.errors.append(buffer.data(),
                      std::min(static_cast<std::size_t>(got), k_most_errors - job.errors.size()));
  }
}

void ChildRunner::finish(const std::shared_ptr<Job>& job) {
  read_output(*job, Reading::rest);
  read_errors(*job);
  forget(*job);
  if (job->timer) loop_.cancel(job->timer);
  const auto ended = job->child->wait();
  std::erase(jobs_, job);
  const auto& name = job->command.argv[0];
  if (job->late) return job->on_end(error("{}: no answer in {} ms", name, job->command.time_limit.count()));
  if (!ended) return job->on_end(ended.error().in(name));
  if (ended->status.success()) return job->on_end({});
  const auto words = one_line(all_lines(job->errors), 500);
  job->on_end(error("{}: {}{}{}", name, ended->status.to_string(), words.empty() ? "" : ": ", words));
}

}  // namespace glidepod::condor
