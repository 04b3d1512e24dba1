#include "tests/glue/simulate/world.hpp"

#include <signal.h>

#include <algorithm>
#include <cstdio>

namespace glidepod::glue::simulate {

namespace {
World* the_world = nullptr;
constexpr std::size_t k_most_calls = 20'000;  // in one turn
constexpr std::uint64_t k_most_steps = 200'000;
// A turn of glue's is short; leaving waits two seconds for the agent to read.
constexpr auto k_longest_turn = std::chrono::milliseconds(3500);
}  // namespace

World::World(std::uint64_t seed, bool tell)
    : random(seed), weather(random), tree(*this), truth(*this), agent(*this), tell_(tell) {
  the_world = this;
  if (random.chance(200)) rebirths_ = 20'000;
  options.container = "payload-0";
  options.own_shm = random.chance(300);
  if (options.own_shm && random.chance(300)) shm_files = static_cast<int>(random.between(1, 5));
  options.grace = std::chrono::seconds(random.between(0, random.chance(500) ? 60 : 5));
}

World::~World() {
  the_world = nullptr;
}

World& World::current() {
  return *the_world;
}

bool World::exists() {
  return the_world != nullptr;
}

std::string World::run() {
  try {
    agent.begin();
    // Some are asked again.
    for (int times = weather.terminate ? static_cast<int>(random.between(1, 3)) : 0; times > 0; --times)
      later(random.delay(0, 120'000), [this] { raise(SIGTERM); });
    lose_glues();
    for (int i = 0; i < 3; ++i) tree.fork(0, Process::Kind::stranger);
    auto loop = Loop::create();
    Server server(*loop, options);
    const auto code = server.run();
    if (broken_) {
      check(!code.ok(), "glue fails where it cannot even wait for an agent");
      return "";
    }
    check(code.ok(), code.ok() ? "" : "glue has failed: " + code.error().message());
    truth.left(code.value());
  } catch (const Failure& failure) {
    note("not so: " + failure.what);
    return failure.what;
  }
  return "";
}

Micro World::micro(std::int64_t low, std::int64_t high) {
  return Micro(random.between(low, random.chance(800) ? low + (high - low) / 8 : high));
}

void World::note(const std::string& line) {
  if (!tell_) return;
  const auto since = std::chrono::duration<double>(now().time_since_epoch()).count() - 1000;
  std::printf("%10.4f %s\n", since, line.c_str());
}

void World::fail(const std::string& what) const {
  throw Failure{what};
}

void World::pass(Micro time) {
  const auto until = now() + time;
  while (!clock.empty() && clock.next_at() <= until) clock.step();
  clock.pass_to(until);
  check(clock.steps() < k_most_steps, "the schedule comes to its end");
}

void World::pass_call() {
  check(++calls_ < k_most_calls, "glue comes back to its loop");
  if (random.chance(700)) return;
  if (weather.busy && random.chance(20)) return pass(micro(100, 20'000));
  pass(micro(1, 200));
}

void World::wait_until(const std::optional<SteadyTime>& timer, const std::function<bool()>& ready) {
  while (!ready() && (!timer || now() < *timer)) {
    truth.check();
    if (!clock.empty() && (!timer || clock.next_at() <= *timer)) {
      clock.step();
    } else {
      check(timer.has_value(), "glue does not sleep for ever before it is done");
      clock.pass_to(*timer);
    }
    check(clock.steps() < k_most_steps, "the schedule comes to its end");
  }
}

void World::begin_turn() {
  calls_ = 0;
  if (weather.busy) pass(micro(0, 20'000));
  turn_began_ = now();
}

void World::end_turn(std::size_t timers, std::size_t watches) {
  check(now() - turn_began_ < k_longest_turn, "glue does not wait but in its loop");
  check(held == 0, "nothing is kept back while glue sleeps");
  check(!broken_, "glue ends where it cannot even wait for an agent");
  truth.check();
  check(truth.open() || truth.refusing() || timers <= 1, "one timer is enough to look for an agent");
  if (agent.is_connected() && !truth.open() && !truth.refusing() && !ready(k_signals) && timers != 0)
    fail("no timer is set while nothing is to be done");
  // signals, the agent, the folder where it will be
  check(truth.open() || watches <= 1U + agent.is_connected() + (folder_watch != -1),
        "nothing of a job is watched when it is over");
  const bool works = std::ranges::any_of(tree.children(Tree::k_glue), [](const Process* child) {
    return child->kind == Process::Kind::counter;
  });
  check(timers == 0 || works || weather.slow_reaping || ready(k_signals) || !truth.runs_calmly(),
        "no timer is set beside a job that runs");
}

void World::raise(int number) {
  signals_.insert(number);
}

std::vector<signalfd_siginfo> World::take_signals(std::size_t most) {
  std::vector<signalfd_siginfo> result;
  while (!signals_.empty() && result.size() < most) {
    signalfd_siginfo info{};
    info.ssi_signo = static_cast<std::uint32_t>(*signals_.begin());
    signals_.erase(signals_.begin());
    if (info.ssi_signo == SIGTERM) truth.terminated();
    result.push_back(info);
  }
  return result;
}

int World::open_pipe() {
  const int fd = new_fd();
  pipes_[fd];
  return fd;
}

World::Pipe* World::pipe(int fd) {
  const auto found = pipes_.find(fd);
  return found == pipes_.end() ? nullptr : &found->second;
}

void World::put(int fd, std::string record) {
  if (Pipe* at = pipe(fd)) at->records.push_back(std::move(record));
}

void World::close_pipe(int fd) {
  if (Pipe* at = pipe(fd)) at->open = false;
}

bool World::ready(int fd) const {
  if (fd == k_signals) return !signals_.empty();
  const auto found = pipes_.find(fd);
  if (found != pipes_.end()) return !found->second.open || !found->second.records.empty();
  return agent.ready(fd);
}

}  // namespace glidepod::glue::simulate
