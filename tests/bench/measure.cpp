// Times commands against each other. With no arguments it is the program to time: it ends at once.
//
//   measure ROUNDS [--to-file PATH | --to-pipe] NAME COMMAND... [-- NAME COMMAND...]...
//   measure --write BYTES
//
// The commands run in turn, round after round, so that whatever else the machine does meets all of them
// alike. One more round before is not counted. Prints "NAME best median p90 worst", in microseconds from fork
// to wait, a line a command. A command that fails ends the run. --write writes so much to standard output, as
// a program with a sensible buffer does.
#include <fcntl.h>
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
  std::vector<double> microseconds;
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

int write_bytes(long long count) {
  static char buffer[k_buffer];
  std::memset(buffer, 'x', sizeof buffer);
  while (count > 0) {
    const auto put = ::write(1, buffer, static_cast<std::size_t>(std::min<long long>(count, sizeof buffer)));
    if (put < 0) fail("write");
    count -= put;
  }
  return 0;
}

// The time from fork to wait; what the command writes is drained as it comes.
double run(const Command& command, Output output, const char* path) {
  int ends[2] = {-1, -1};
  if (output == Output::pipe && ::pipe2(ends, O_CLOEXEC) != 0) fail("pipe");
  if (output == Output::file) {
    ends[1] = ::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (ends[1] < 0) fail(path);
  }
  const double since = now();
  const pid_t pid = ::fork();
  if (pid < 0) fail("fork");
  if (pid == 0) {
    if (ends[1] >= 0) ::dup2(ends[1], 1);
    ::execvp(command.argv[0], command.argv.data());
    ::_exit(127);
  }
  if (ends[1] >= 0) ::close(ends[1]);
  if (ends[0] >= 0) {
    static char buffer[k_buffer];
    while (::read(ends[0], buffer, sizeof buffer) > 0) {
    }
    ::close(ends[0]);
  }
  int status = 0;
  if (::waitpid(pid, &status, 0) != pid) fail("wait");
  const double took = now() - since;
  if (status != 0) {
    std::fprintf(stderr, "measure: %s: wait status %d\n", command.name.c_str(), status);
    std::exit(1);
  }
  return took;
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
    Command command{argv[next++], {}, {}};
    for (; next < argc && std::strcmp(argv[next], "--") != 0; ++next) command.argv.push_back(argv[next]);
    ++next;
    if (command.argv.empty()) return 2;
    command.argv.push_back(nullptr);
    commands.push_back(std::move(command));
  }
  if (rounds < 1 || commands.empty()) return 2;
  for (int round = 0; round <= rounds; ++round) {
    for (Command& command : commands) {
      const double took = run(command, output, path);
      if (round > 0) command.microseconds.push_back(took);
    }
  }
  for (Command& command : commands) {
    auto& values = command.microseconds;
    std::sort(values.begin(), values.end());
    std::printf("%s %.1f %.1f %.1f %.1f\n", command.name.c_str(), values.front(), values[values.size() / 2],
                values[values.size() * 9 / 10], values.back());
  }
  return 0;
}
