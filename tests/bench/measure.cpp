// Times commands against each other. With no arguments it is the program to time: it ends at once.
//
//   measure ROUNDS [--to-file PATH | --to-pipe] NAME COMMAND... [-- NAME COMMAND...]...
//   measure --write BYTES
//
// The commands run in turn, round after round, so that whatever else the machine does meets all of them
// alike. One more round before is not counted. Prints "NAME best median p90 worst", in microseconds from fork
// to wait, a line a command. A command that fails ends the run.
//
// --write writes so much to standard output, as a program with a sensible buffer does, and then the
// microseconds of processor time that it took to standard error. It stays on its first processor, since
// a pipe whose two ends share one is three times as fast. Such commands, with their output to a file
// or a pipe, get two more numbers: the median of what the writer said, and of the processor time of the
// process that was started here.
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr std::size_t k_buffer = 128 << 10;

struct Command {
  std::string name;
  std::vector<char*> argv;
  std::vector<double> took, writer, started;  // microseconds
};

enum class Output { inherited, file, pipe };

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

double now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

double processor_time(const rusage& usage) {
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

void stay_on_first_processor() {
  cpu_set_t all;
  if (::sched_getaffinity(0, sizeof all, &all) != 0) fail("sched_getaffinity");
  int first = 0;
  while (!CPU_ISSET(first, &all)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  if (::sched_setaffinity(0, sizeof one, &one) != 0) fail("sched_setaffinity");
}

int write_bytes(long long count) {
  static char buffer[k_buffer];
  stay_on_first_processor();
  std::memset(buffer, 'x', sizeof buffer);
  while (count > 0) {
    const auto put = ::write(1, buffer, static_cast<std::size_t>(std::min<long long>(count, sizeof buffer)));
    if (put < 0) fail("write");
    count -= put;
  }
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  std::fprintf(stderr, "%.0f\n", processor_time(usage));
  return 0;
}

struct Pipe {
  int ends[2] = {-1, -1};
  Pipe() {
    if (::pipe2(ends, O_CLOEXEC) != 0) fail("pipe");
  }
  void close(int which) {
    ::close(ends[which]);
    ends[which] = -1;
  }
};

// What the command writes is drained as it comes.
void run(Command& command, Output output, const char* path) {
  static char buffer[k_buffer];
  Pipe out, said;
  if (output == Output::file) {
    out.close(1);
    out.ends[1] = ::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (out.ends[1] < 0) fail(path);
  }
  const double since = now();
  const pid_t pid = ::fork();
  if (pid < 0) fail("fork");
  if (pid == 0) {
    if (output != Output::inherited) {
      ::dup2(out.ends[1], 1);
      ::dup2(said.ends[1], 2);
    }
    ::execvp(command.argv[0], command.argv.data());
    ::_exit(127);
  }
  out.close(1);
  said.close(1);
  while (output == Output::pipe && ::read(out.ends[0], buffer, sizeof buffer) > 0) {
  }
  int status = 0;
  rusage usage{};
  if (::wait4(pid, &status, 0, &usage) != pid) fail("wait");
  command.took.push_back(now() - since);
  const auto got = ::read(said.ends[0], buffer, sizeof buffer - 1);
  buffer[std::max<ssize_t>(got, 0)] = '\0';
  out.close(0);
  said.close(0);
  if (status != 0) {
    std::fprintf(stderr, "measure: %s: wait status %d %s\n", command.name.c_str(), status, buffer);
    std::exit(1);
  }
  command.writer.push_back(std::atof(buffer));
  command.started.push_back(processor_time(usage));
}

double at(std::vector<double>& values, std::size_t percent) {
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() * percent / 100, values.size() - 1)];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 0;
  if (std::strcmp(argv[1], "--write") == 0 && argc == 3) return write_bytes(std::atoll(argv[2]));
  const int rounds = std::atoi(argv[1]);
  int next = 2;
  Output output = Output::inherited;
  const char* path = nullptr;
  if (next < argc && std::strcmp(argv[next], "--to-pipe") == 0) {
    output = Output::pipe;
    next += 1;
  } else if (next + 1 < argc && std::strcmp(argv[next], "--to-file") == 0) {
    output = Output::file;
    path = argv[next + 1];
    next += 2;
  }
  std::vector<Command> commands;
  while (next < argc) {
    Command command{argv[next++], {}, {}, {}, {}};
    for (; next < argc && std::strcmp(argv[next], "--") != 0; ++next) command.argv.push_back(argv[next]);
    ++next;
    if (command.argv.empty()) return 2;
    command.argv.push_back(nullptr);
    commands.push_back(std::move(command));
  }
  if (rounds < 1 || commands.empty()) return 2;
  for (Command& command : commands) run(command, output, path);
  for (Command& command : commands) command.took = command.writer = command.started = {};
  for (int round = 0; round < rounds; ++round)
    for (Command& command : commands) run(command, output, path);
  for (Command& command : commands) {
    auto& took = command.took;
    std::printf("%s %.1f %.1f %.1f %.1f", command.name.c_str(), at(took, 0), at(took, 50), at(took, 90),
                at(took, 100));
    if (output != Output::inherited) std::printf(" %.1f %.1f", at(command.writer, 0), at(command.started, 0));
    std::printf("\n");
  }
  return 0;
}
