// Explores every schedule of a small pod. See README.md.

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tests/explore/search.hpp"

namespace {

using namespace glidepod::explore;
using Clock = std::chrono::steady_clock;

constexpr std::string_view k_usage = R"(usage: explore [options]

  --faults N      at most so many in a schedule (1): first none, then one, ... up to N
  --variant NAME  only this pair of jobs; may come again (all of them)
  --seconds N     stop after so long (none); each number of faults with each pair gets a part
                  of what is left
  --states N      stop after so many (20000000); each takes 8 to 16 bytes
  --processes N   (2)
  --whole         stopping before the end is a failure
  --least N       fewer states than this are a failure (1)
  --replay NAME:FAULTS:CHOICES   tell the story of one schedule

Exit code 0 if all properties held in all that was explored, 1 if not.
)";

struct Options {
  std::uint64_t faults = 1, seconds = 0, states = 20'000'000, processes = 2, least = 1;
  bool whole = false;
  std::vector<const Variant*> variants;
  std::string replay;
};

const Variant* find(std::string_view name) {
  for (const Variant& one : variants())
    if (one.name == name) return &one;
  fmt::print(stderr, "explore: no variant {}; there are", name);
  for (const Variant& one : variants()) fmt::print(stderr, " {} ({})", one.name, one.what);
  fmt::print(stderr, "\n");
  std::exit(2);
}

// NAME:FAULTS:3.0.12
int tell(std::string_view text) {
  const auto first = text.find(':'), second = text.find(':', first + 1);
  if (second == std::string_view::npos) return 2;
  const Variant& variant = *find(text.substr(0, first));
  const int faults = std::atoi(std::string(text.substr(first + 1, second - first - 1)).c_str());
  Path path;
  std::string_view rest = text.substr(second + 1);
  while (!rest.empty()) {
    unsigned choice = 0;
    const auto [end, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), choice);
    if (problem != std::errc()) return 2;
    path.push_back(static_cast<std::uint8_t>(choice));
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    if (!rest.empty()) rest.remove_prefix(1);
  }
  const Replayed replayed = replay(variant, faults, path, true);
  if (replayed.verdict.empty()) {
    fmt::print("explore: all properties held in {} choices\n", replayed.path.size());
    return 0;
  }
  fmt::print("explore: not so: {}\n", replayed.verdict);
  return 1;
}

void report(const Variant& variant, int faults, const Shared& shared) {
  const Path whole(shared.failure.path, shared.failure.path + shared.failure.length);
  Replayed found = shortened(variant, faults, whole);
  const bool told = !found.verdict.empty();
  if (!told) found.path = whole;
  std::fflush(stdout);
  replay(variant, faults, found.path, true);
  fmt::print("explore: not so: {}\n", told ? found.verdict : std::string(shared.verdict));
  fmt::print("explore: the story above has {} choices, at first {}; again: explore --replay {}:{}:{}\n",
             found.path.size(), whole.size(), variant.name, faults, text_of(found.path));
}

int run(const Options& options) {
  const auto begin = Clock::now();
  Search::Limits limits;
  limits.end =
      options.seconds == 0 ? Clock::time_point::max() : begin + std::chrono::seconds(options.seconds);
  limits.processes = static_cast<int>(options.processes);
  limits.states = options.states;
  Table table(static_cast<unsigned>(std::bit_width(options.states + options.states / 8 + 100'000)));
  std::uint64_t states = 0, steps = 0, compared = 0, rests = 0;
  bool whole = true;
  auto parts = static_cast<int>((options.faults + 1) * options.variants.size());
  for (std::uint64_t faults = 0; faults <= options.faults; ++faults) {
    for (const Variant* variant : options.variants) {
      Shared& shared = *new (glidepod::explore::shared<Shared>()) Shared;
      shared.has_work = true;  // all of it: the root
      Search::Limits left = limits;
      left.states -= std::min(left.states, states);
      const auto then = Clock::now();
      if (options.seconds != 0) left.end = then + (limits.end - then) / parts;
      --parts;
      for (int i = 0; i < left.processes; ++i) {
        if (::fork() != 0) continue;
        Search(*variant, static_cast<int>(faults), left, table, shared).work();
        std::_Exit(0);
      }
      bool crashed = false;
      for (int status = 0; ::wait(&status) > 0;) crashed = crashed || status != 0;
      states += shared.states;
      steps += shared.steps;
      compared += shared.compared;
      rests += shared.rests;
      fmt::print("explore: {}, {} faults: {} new states, {} steps, {} ends, at most {} deep, {:.1f} s{}\n",
                 variant->name, faults, shared.states.load(), shared.steps.load(), shared.rests.load(),
                 shared.deepest.load(), std::chrono::duration<double>(Clock::now() - then).count(),
                 shared.stop ? ": stopped" : ": all");
      std::fflush(stdout);
      if (crashed) {
        fmt::print("explore: a process has crashed\n");
        return 1;
      }
      whole = whole && !shared.stop;
      if (!shared.failed) continue;
      report(*variant, static_cast<int>(faults), shared);
      fmt::print("explore: found after {} states, {} steps\n", states, steps);
      return 1;
    }
  }
  fmt::print("explore: {} states, {} steps, {} ends, {:.1f} s, {} pairs of states compared: {}\n", states,
             steps, rests, std::chrono::duration<double>(Clock::now() - begin).count(), compared,
             whole ? "all schedules" : "not all schedules");
  if (states < options.least) fmt::print("explore: these are fewer than {}\n", options.least);
  if (options.whole && !whole) fmt::print("explore: it was to be all\n");
  // So many states always have some of those that are compared.
  const bool blind = states > 100'000 && compared == 0;
  if (blind) fmt::print("explore: no states were compared\n");
  return states < options.least || (options.whole && !whole) || blind ? 1 : 0;
}

}  // namespace

int main(int count, char** words) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    const auto value = [&] { return std::string_view(i + 1 < count ? words[++i] : ""); };
    const auto number = [&](std::uint64_t& to) {
      const std::string_view text = value();
      const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), to);
      if (problem == std::errc() && !text.empty() && rest == text.data() + text.size()) return;
      fmt::print(stderr, "explore: {} needs a number\n", word);
      std::exit(2);
    };
    if (word == "--faults") {
      number(options.faults);
    } else if (word == "--variant") {
      options.variants.push_back(find(value()));
    } else if (word == "--seconds") {
      number(options.seconds);
    } else if (word == "--states") {
      number(options.states);
    } else if (word == "--processes") {
      number(options.processes);
    } else if (word == "--least") {
      number(options.least);
    } else if (word == "--whole") {
      options.whole = true;
    } else if (word == "--replay") {
      options.replay = value();
    } else {
      fmt::print(word == "--help" ? stdout : stderr, "{}", k_usage);
      return word == "--help" ? 0 : 2;
    }
  }
  if (options.variants.empty())
    for (const Variant& one : variants()) options.variants.push_back(&one);
  return options.replay.empty() ? run(options) : tell(options.replay);
}
