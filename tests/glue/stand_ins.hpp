#pragma once

#include <sys/types.h>

#include <cstring>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "glue/processes.hpp"
#include "glue/session.hpp"
#include "glue/worker.hpp"
#include "lib/base/loop.hpp"
#include "lib/wire/messages.hpp"

// What the parts of glue's server have for processes, children, a log and the time. The linker takes the
// functions of stand_ins.cpp in the place of glue's own; pipes and the loop are real.
namespace glidepod::glue::stand_ins {

using Sent = std::vector<std::pair<pid_t, int>>;  // signals, in order

// A child of this process, or a session's supervisor.
struct Begun {
  pid_t pid = -1;
  User user;
  std::vector<std::string> folders;
  Fd report;  // the end that it writes to
  template <typename Record>
  void tell(const Record& record) const {
    write_bytes(&record, sizeof record);
  }
  void end() { report.reset(); }

 private:
  void write_bytes(const void* bytes, std::size_t size) const;
};

struct Scene {
  Milliseconds now{1'000'000};
  std::vector<ProcessStat> processes;
  Sent sent;
  std::vector<std::string> log;
  std::list<Begun> begun;
  bool no_child = false;       // none can be made
  bool no_watch = false;       // the next session's pipe cannot be watched
  bool no_links = false;       // none can be made
  bool has_files = true;       // the user, in folders whose files are counted
  std::optional<uid_t> owner;  // of something in /dev/shm
  bool terminal = false;       // of the next session
  int links = 0;               // that are made now
  std::uint64_t oom_kills = 0;

  Begun& last() { return begun.back(); }
  Sent taken() { return std::exchange(sent, {}); }
};
extern Scene scene;

ProcessStat process(pid_t pid, char state);
// So much later: what is due has been done.
void pass(Loop& loop, Milliseconds time);

}  // namespace glidepod::glue::stand_ins
