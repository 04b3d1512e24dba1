// Runs schedules of glue's server among processes that are a model. See README.md.

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string_view>

#include "tests/glue/simulate/world.hpp"

namespace {

using glidepod::glue::simulate::World;

constexpr std::string_view k_usage = R"(usage: simulate_glue [options]

  --schedules N   so many (20000), of the seeds S, S+1, ...
  --seed S        the first seed (1)
  --all           go on after a failure, and count them by property
  --replay SEED   tell the whole story of one
)";

std::string replay(std::uint64_t seed, bool tell, std::uint64_t* steps) {
  World world(seed, tell);
  std::string verdict = world.run();
  *steps += world.clock.steps();
  return verdict;
}

}  // namespace

int main(int count, char** words) {
  std::uint64_t schedules = 20'000, first = 1, replayed = 0, steps = 0;
  bool all = false, replaying = false;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    std::uint64_t* value = word == "--schedules" ? &schedules
                           : word == "--seed"    ? &first
                           : word == "--replay"  ? &replayed
                                                 : nullptr;
    if (word == "--all") {
      all = true;
      continue;
    }
    const std::string_view text = value != nullptr && i + 1 < count ? words[++i] : "";
    if (text.empty() || std::from_chars(text.data(), text.data() + text.size(), *value).ec != std::errc()) {
      fmt::print(word == "--help" ? stdout : stderr, "{}", k_usage);
      return word == "--help" ? 0 : 2;
    }
    replaying |= value == &replayed;
  }
  if (replaying) {
    const std::string verdict = replay(replayed, true, &steps);
    fmt::print("seed {}: {}\n", replayed, verdict.empty() ? "all properties held" : "not so: " + verdict);
    return verdict.empty() ? 0 : 1;
  }
  const auto begin = std::chrono::steady_clock::now();
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> failures;  // how many, the first seed
  std::uint64_t failed = 0, ran = 0;
  for (std::uint64_t seed = first; seed < first + schedules && (all || failed == 0); ++seed, ++ran) {
    const std::string verdict = replay(seed, false, &steps);
    if (verdict.empty()) continue;
    ++failed;
    ++failures.try_emplace(verdict, 0, seed).first->second.first;
  }
  for (const auto& [verdict, where] : failures)
    fmt::print("simulate_glue: not so: {}: {} times, first --replay {}\n", verdict, where.first,
               where.second);
  fmt::print("simulate_glue: {} schedules from seed {}, {} steps, {:.1f} s: {} failed\n", ran, first, steps,
             std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), failed);
  return failed == 0 ? 0 : 1;
}
