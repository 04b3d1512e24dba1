#pragma once

#include "tests/simulate/random.hpp"

namespace glidepod::glue::simulate {

using ::glidepod::simulate::Random;

// What goes wrong in a schedule, in thousandths; each trouble only in some of them.
struct Weather {
  explicit Weather(Random& random) {
    const auto some = [&](int most) {
      return random.chance(300) ? static_cast<int>(random.between(1, most)) : 0;
    };
    forks = some(700);
    phoenix = some(200);
    bomb = some(200);
    dumper = some(300);
    stuck = some(200);
    rude = some(600);
    careless = some(500);
    files = some(700);
    lost_glues = some(300);
    slow_start = some(200);
    bad_start = some(300);
    no_resources = some(150);
    cleaner = some(500);
    counter = some(500);
    hang_up = some(200);
    nonsense = some(50);
    strangers = some(300);
    deaf_agent = some(300);
    unwilling = random.chance(100) ? 900 : 0;
    other_files = some(900);
    no_socket = random.chance(20) ? 100 : 0;
    no_folder = random.chance(20) ? 300 : 0;
    wakers = some(500);
    unprivileged = random.chance(100);
    as_root = random.chance(30);
    if (as_root) files = lost_glues = 0;
    sessions = some(400);
    terminate = random.chance(300);
    busy = random.chance(300);
    patient = random.chance(300);
    slow_reaping = random.chance(200);
  }
  int forks, phoenix, bomb, dumper, stuck, rude, careless;  // of the job's processes
  int wakers;                                               // send SIGCONT to others
  int files;                                                // left in shared folders
  int lost_glues;                                           // in other containers, with jobs of this user
  int slow_start, bad_start;                                // between fork and exec
  int no_resources;                                         // no pipe, fork, watch
  int cleaner, counter;                                     // hangs, is stopped, fails
  int hang_up, nonsense, strangers, deaf_agent;             // the agent's
  int unwilling;                                            // hangs up soon after each Hello
  int other_files;                                          // appear beside its socket
  int no_socket, no_folder;                                 // of that: it can never be reached
  int sessions;
  bool terminate;     // SIGTERM from outside
  bool unprivileged;  // neither glue nor agent is root
  bool as_root;       // the jobs are root's
  bool busy;          // glue gets its processor late
  bool slow_reaping;  // glue finds more children that have ended than it takes at once
  bool patient;       // jobs are long, and mostly left alone
};

}  // namespace glidepod::glue::simulate
