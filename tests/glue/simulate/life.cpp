// What the job's processes do, and those that count and clean.
#include <signal.h>

#include <array>
#include <cstring>

#include "glue/job_child.hpp"
#include "glue/session.hpp"
#include "glue/worker.hpp"
#include "tests/glue/simulate/world.hpp"

namespace glidepod::glue::simulate {

namespace {

constexpr std::size_t k_most_bombs = 12;
constexpr Micro k_second = std::chrono::seconds(1);

template <typename T>
std::string bytes_of(const T& record) {
  std::string bytes(sizeof record, '\0');
  std::memcpy(bytes.data(), &record, sizeof record);
  return bytes;
}

}  // namespace

// Between fork and exec.
void World::begin_job(Process& main) {
  main.at_end = [this, pid = main.pid] {
    truth.main_ended(tree.find(pid)->status);
    note(fmt::format("the main process has ended with {}", tree.find(pid)->status));
  };
  const bool slow = random.chance(weather.slow_start);
  if (slow && random.chance(300)) {
    main.stuck = true;
    truth.may_be_unclean();
    tree.later(main, micro(1000, 90'000'000), [this](Process& at) { tree.release(at); });
  }
  // Some just when they are given up.
  const Micro start = !slow                ? micro(200, 4000)
                      : random.chance(300) ? 30 * k_second + Micro(random.between(0, 4000))
                                           : micro(1000, 60'000'000);
  tree.later(main, start, [this](Process& at) {
    if (at.stuck || at.state == Process::State::stopped) {
      // It is killed, or goes on.
      tree.later(at, k_second, [this](Process& late) { run_program(late); });
      return;
    }
    run_program(at);
  });
}

void World::run_program(Process& main) {
  if (main.stuck || main.state == Process::State::stopped)
    return tree.later(main, k_second, [this](Process& late) { run_program(late); });
  if (random.chance(weather.bad_start)) {
    note("the child reports a failure");
    truth.reported_failure();
    put(main.reports_to, bytes_of(ChildReport{.step = Step::program, .code = ENOENT}));
    return tree.later(main, micro(10, 2000), [this](Process& at) { tree.end(at, 127 << 8); });
  }
  note("the job's program runs");
  truth.runs();
  if (random.chance(weather.files)) ++files;
  close_pipe(main.reports_to);
  live(main);
}

void World::live(Process& process) {
  process.phoenix = random.chance(weather.phoenix);
  process.bomb = !process.phoenix && random.chance(weather.bomb);
  process.rude = random.chance(weather.rude);
  process.dumps = random.chance(weather.dumper);
  process.careless = random.chance(weather.careless);
  again(process);
}

void World::stir() {
  for (const Process* process : tree.descendants())
    if (process->kind == Process::Kind::job && random.chance(weather.forks))
      tree.later(*process, micro(0, 3000), [this](Process& at) {
        if (at.state == Process::State::runs && !at.stuck && truth.runs_now()) act(at);
      });
}

// Once it is to end, a process that will not does all it can.
void World::again(Process& process) {
  const bool fast = (process.phoenix || process.bomb) && truth.ending();
  tree.later(process, fast ? micro(50, 1500) : micro(500, 20'000'000), [this](Process& at) { act(at); });
}

void World::act(Process& process) {
  if (process.stuck || process.state == Process::State::stopped)
    return tree.later(process, truth.ending() ? Micro(5000) : k_second, [this](Process& at) { act(at); });
  if (random.chance(weather.stuck)) {
    note(fmt::format("process {} is stuck in the kernel", process.pid));
    process.stuck = true;
    if (random.chance(300)) process.exit_status = 7 << 8;
    truth.may_be_unclean();
    // Some for a little longer than glue waits.
    const Micro time = random.chance(300) ? micro(9'000'000, 20'000'000) : micro(1000, 100'000'000);
    tree.later(process, time, [this](Process& at) { tree.release(at); });
    return again(process);
  }
  if (random.chance(weather.files)) ++(random.chance(300) ? stubborn_files : files);
  if (random.chance(weather.files / 3)) files = stubborn_files = 0;  // of its own
  if (random.chance(weather.wakers)) {
    const auto others = tree.descendants();
    tree.wake(*random.pick(others));
  }
  const bool crowd = tree.descendants().size() >= k_most_bombs;
  if (((process.phoenix && rebirths_ > 0) || process.bomb) && !crowd) {
    if (process.phoenix) --rebirths_;
    const bool phoenix = process.phoenix, bomb = process.bomb;
    Process& child = tree.fork(process.pid, Process::Kind::job);
    child.phoenix = phoenix;
    child.bomb = bomb;
    child.careless = random.chance(weather.careless);
    again(child);
    // One fork, then the parent's end, with a moment in between.
    if (phoenix) return tree.later(process, micro(0, 100), [this](Process& at) { ends(at); });
    return again(process);
  }
  if (!crowd && random.chance(weather.forks)) {
    live(tree.fork(process.pid, Process::Kind::job));
    return again(process);
  }
  if (random.chance(weather.patient ? 10 : 500)) return ends(process);
  again(process);
}

void World::ends(Process& process) {
  if (process.stuck || process.state == Process::State::stopped) return again(process);
  const std::array statuses = {0, 0, 0, 3 << 8, 85 << 8, SIGSEGV | 128, SIGABRT, SIGKILL};
  tree.end(process, random.pick(statuses));
}

void World::begin_cleaner(Process& cleaner, bool as_root) {
  enum class Way { well, hangs, stuck, dies, forgets };
  Way way = Way::well;
  if (random.chance(weather.cleaner)) {
    const std::array ways = {Way::hangs, Way::stuck, Way::dies, Way::forgets};
    way = random.pick(ways);
  }
  note(fmt::format("a cleaner, as root: {}, way {}", as_root, static_cast<int>(way)));
  // What the user's own leaves, for whatever reason, root's removes.
  if (way != Way::well && (as_root || way == Way::stuck)) truth.may_be_unclean();
  if (way == Way::stuck) {
    cleaner.stuck = true;
    tree.later(cleaner, Micro(random.between(1000, 100'000'000)), [this](Process& at) { tree.release(at); });
  }
  if (way == Way::hangs || way == Way::stuck) return;
  const Micro work = micro(100, as_root ? 3'000'000 : 15'000'000);
  tree.later(cleaner, work, [this, way, as_root](Process& at) {
    if (way == Way::dies) return tree.end(at, SIGKILL);
    if (way == Way::well) files = 0;
    if (way == Way::well && as_root) stubborn_files = 0;
    const Cleaned cleaned{static_cast<std::uint32_t>(random.between(0, 9)), files + stubborn_files == 0};
    truth.account.removed(cleaned.removed);
    put(at.reports_to, bytes_of(cleaned));
    tree.end(at, 0);
  });
}

// Of what a job whose glue was killed has left in a /dev/shm of the container's own.
void World::begin_remover(Process& remover) {
  tree.later(remover, random.delay(1, 60'000), [this](Process& at) {
    const int removes = random.chance(weather.cleaner) ? 0 : static_cast<int>(random.between(1, shm_files));
    if (removes == 0 && random.chance(500)) {
      truth.workers.removed(0);
      return tree.end(at, SIGKILL);
    }
    shm_files -= removes;
    if (shm_files == 0) truth.contact.may_look();
    const Cleaned cleaned{static_cast<std::uint32_t>(removes), true};
    truth.workers.removed(cleaned.removed);
    put(at.reports_to, bytes_of(cleaned));
    tree.end(at, 0);
  });
}

void World::begin_counter(Process& counter) {
  enum class Way { well, hangs, stuck, dies };
  Way way = Way::well;
  if (random.chance(weather.counter)) {
    const std::array ways = {Way::hangs, Way::stuck, Way::dies};
    way = random.pick(ways);
  }
  note(fmt::format("a counter, way {}", static_cast<int>(way)));
  counter.at_end = [this] { truth.workers.count_ended(); };
  if (way == Way::stuck) {
    counter.stuck = true;
    truth.may_be_unclean();
    tree.later(counter, Micro(random.between(1000, 300'000'000)), [this](Process& at) { tree.release(at); });
  }
  if (way == Way::hangs || way == Way::stuck) return;
  tree.later(counter, micro(100, 19'000'000), [this, way](Process& at) {
    if (at.state == Process::State::stopped) return;
    if (way == Way::dies) return tree.end(at, SIGKILL);
    const Counted counted{random.between(1, 1'000'000), random.chance(500)};
    truth.workers.counted(counted);
    put(at.reports_to, bytes_of(counted));
    tree.end(at, 0);
  });
}

// Jobs of the same user, in other containers, whose glue is killed; not while one is here.
void World::lose_glues() {
  if (truth.idle() && random.chance(weather.lost_glues)) {
    note("a job elsewhere has left files");
    ++(random.chance(300) ? stubborn_files : files);
  }
  later(random.delay(1, 20'000), [this] { lose_glues(); });
}

// A session's supervisor ends what is left of it, at its end and at SIGTERM.
void World::begin_session(Process& supervisor, std::uint64_t id) {
  const auto end = [this, id](Process& at) {
    for (Process* process : tree.descendants(at.pid)) tree.signal(*process, SIGKILL);
    tree.later(at, micro(5000, 20'000), [this, id](Process& late) {
      if (late.stuck) return;
      SessionReport report{.what = SessionReport::What::ended};
      report.status = ExitStatus::exited(static_cast<int>(random.between(0, 255)));
      truth.sessions.ends(id, report.status);
      put(late.reports_to, bytes_of(report));
      tree.end(late, 0);
    });
  };
  supervisor.at_term = [this, end, pid = supervisor.pid] { end(*tree.find(pid)); };
  tree.later(supervisor, micro(500, 20'000), [this, end, id](Process& at) {
    if (random.chance(weather.bad_start)) {
      truth.sessions.fails(id);
      put(at.reports_to, bytes_of(SessionReport{.what = SessionReport::What::failed}));
      return tree.end(at, 1 << 8);
    }
    put(at.reports_to, bytes_of(SessionReport{}));
    live(tree.fork(at.pid, Process::Kind::job));
    tree.later(at, micro(1000, 20'000'000), end);
  });
}

rusage World::usage() {
  rusage usage{};
  const auto time = [&] {
    return timeval{static_cast<time_t>(random.between(0, 5)),
                   static_cast<suseconds_t>(random.between(0, 999'999))};
  };
  usage.ru_utime = time();
  usage.ru_stime = time();
  usage.ru_maxrss = random.between(0, 1'000'000);
  return usage;
}

}  // namespace glidepod::glue::simulate
