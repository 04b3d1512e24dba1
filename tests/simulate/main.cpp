// Runs schedules of the agent's core in a simulated pod. See README.md.

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "tests/simulate/world.hpp"

namespace {

using namespace glidepod::simulate;
using Clock = std::chrono::steady_clock;

constexpr std::string_view k_usage = R"(usage: simulate [options]

  --schedules N   so many (100000), of the seeds S, S+1, ...
  --seed S        the first seed (1)
  --seconds N     stop after so long, however many it were
  --hours N       the same in hours, and as many schedules as fit
  --steps N       a schedule with more steps has failed (50000)
  --processes N   (2)
  --all           go on after a failure, and count them by property
  --coverage      print the transitions seen
  --replay SEED   tell the whole story of one

A run of 100,000 schedules or more also fails if it never saw one of the transitions
in pilot-agent/core/transitions.cpp. Exit code 0 if all properties held, 1 if not.
)";

// So many schedules see every transition.
constexpr std::uint64_t k_enough = 100'000;

struct Options {
  std::uint64_t schedules = 100'000, seed = 1, steps = 50'000, processes = 2, seconds = 0, replay = 0;
  bool all = false, coverage = false, replaying = false;
};

// What one process has seen.
struct Summary {
  std::uint64_t schedules = 0, steps = 0;
  Coverage coverage;
  struct Failure {
    std::uint64_t seed = 0;
    char property[120] = {};
    char about[280] = {};
  };
  std::uint64_t failed = 0;
  Failure failures[2000];  // the first of each process
};

void copy(std::string_view from, char* to, std::size_t room) {
  from = from.substr(0, room - 1);
  *std::copy(from.begin(), from.end(), to) = '\0';
}

// Of all processes: one of them has failed.
using Stop = std::atomic<bool>;

void work(const Options& options, std::uint64_t part, Summary& summary, Clock::time_point end, Stop& stop) {
  for (std::uint64_t i = part; i < options.schedules && !stop; i += options.processes) {
    if (options.seconds != 0 && Clock::now() >= end) return;
    World world(options.seed + i, summary.coverage, {false});
    const bool held = world.run(options.steps).empty();
    ++summary.schedules;
    summary.steps += world.clock.steps();
    if (held) continue;
    if (summary.failed < std::size(summary.failures)) {
      auto& failure = summary.failures[summary.failed];
      failure.seed = options.seed + i;
      copy(world.properties.verdict(), failure.property, sizeof failure.property);
      copy(world.properties.about(), failure.about, sizeof failure.about);
    }
    ++summary.failed;
    if (!options.all) stop = true;
  }
}

bool read_all(int fd, void* to, std::size_t size) {
  for (std::size_t got = 0; got < size;) {
    const ssize_t n = ::read(fd, static_cast<char*>(to) + got, size - got);
    if (n <= 0) return false;
    got += static_cast<std::size_t>(n);
  }
  return true;
}

void write_all(int fd, const void* from, std::size_t size) {
  for (std::size_t put = 0; put < size;) {
    const ssize_t n = ::write(fd, static_cast<const char*>(from) + put, size - put);
    if (n <= 0) std::_Exit(1);
    put += static_cast<std::size_t>(n);
  }
}

int replay(std::uint64_t seed, const Options& options) {
  Coverage coverage;
  World world(seed, coverage, {true});
  const std::string& verdict = world.run(options.steps);
  if (verdict.empty()) {
    fmt::print("seed {}: all properties held in {} steps\n", seed, world.clock.steps());
    return 0;
  }
  fmt::print("seed {}: not so: {}: {}\n", seed, verdict, world.properties.about());
  return 1;
}

int run(const Options& options) {
  const auto begin = Clock::now();
  const auto end = begin + std::chrono::seconds(options.seconds);
  void* shared = ::mmap(nullptr, sizeof(Stop), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 2;
  Stop& stop = *new (shared) Stop(false);
  std::vector<int> pipes;
  for (std::uint64_t part = 0; part < options.processes; ++part) {
    int ends[2];
    if (::pipe(ends) != 0) return 2;
    if (::fork() == 0) {
      static Summary mine;
      work(options, part, mine, end, stop);
      write_all(ends[1], &mine, sizeof mine);
      std::_Exit(0);
    }
    ::close(ends[1]);
    pipes.push_back(ends[0]);
  }
  Summary total;
  std::map<std::uint64_t, Summary::Failure> failures;
  bool whole = true;
  for (const int fd : pipes) {
    static Summary part;
    whole = read_all(fd, &part, sizeof part) && whole;
    total.schedules += part.schedules;
    total.steps += part.steps;
    total.failed += part.failed;
    total.coverage.add(part.coverage);
    for (std::size_t i = 0; i < std::min<std::size_t>(part.failed, std::size(part.failures)); ++i)
      failures[part.failures[i].seed] = part.failures[i];
  }
  while (::wait(nullptr) > 0) {
  }
  if (!whole) {
    fmt::print("simulate: a process has crashed\n");
    return 1;
  }
  if (options.coverage) total.coverage.print();
  std::map<std::string, std::vector<std::uint64_t>> by_property;
  for (const auto& [seed, failure] : failures) by_property[failure.property].push_back(seed);
  for (const auto& [property, seeds] : by_property)
    fmt::print(
        "simulate: not so: {}: {} of the failures, seeds {}: {}\n", property, seeds.size(),
        fmt::join(seeds.begin(),
                  seeds.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(seeds.size(), 12)), " "),
        failures[seeds.front()].about);
  fmt::print("simulate: {} schedules from seed {}, {} steps, {} of {} transitions, {:.1f} s: {} failed\n",
             total.schedules, options.seed, total.steps, total.coverage.seen(), Coverage::all(),
             std::chrono::duration<double>(Clock::now() - begin).count(), total.failed);
  const std::size_t missing = total.schedules >= k_enough ? total.coverage.print_missing() : 0;
  if (failures.empty()) return missing == 0 ? 0 : 1;
  if (!options.all) {
    std::fflush(stdout);
    replay(failures.begin()->first, options);
  }
  fmt::print("replay one: simulate --replay {}\n", failures.begin()->first);
  return 1;
}

}  // namespace

int main(int count, char** words) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    const auto number = [&](std::uint64_t& value) {
      const std::string_view text = i + 1 < count ? words[++i] : "";
      const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (problem == std::errc() && rest == text.data() + text.size()) return;
      fmt::print(stderr, "simulate: {} needs a number\n", word);
      std::exit(2);
    };
    if (word == "--schedules") {
      number(options.schedules);
    } else if (word == "--seed") {
      number(options.seed);
    } else if (word == "--steps") {
      number(options.steps);
    } else if (word == "--seconds") {
      number(options.seconds);
    } else if (word == "--hours") {
      number(options.seconds);
      options.seconds *= 3600;
      options.schedules = ~std::uint64_t{0} / 2;
    } else if (word == "--processes") {
      number(options.processes);
    } else if (word == "--replay") {
      number(options.replay);
      options.replaying = true;
    } else if (word == "--all") {
      options.all = true;
    } else if (word == "--coverage") {
      options.coverage = true;
    } else {
      fmt::print(word == "--help" ? stdout : stderr, "{}", k_usage);
      return word == "--help" ? 0 : 2;
    }
  }
  if (options.replaying) return replay(options.replay, options);
  return run(options);
}
