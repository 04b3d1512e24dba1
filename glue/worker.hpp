#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "glue/privileges.hpp"
#include "glue/processes.hpp"
#include "glue/reports.hpp"
#include "lib/base/fd.hpp"
#include "lib/base/loop.hpp"

namespace glidepod::glue {

// Short looks, without a child. True: something below the folders is the user's, or there is too much to
// tell.
bool may_have_files(const User& user, const std::vector<std::string>& folders);
// The same, with the user's System V IPC objects.
bool may_have_left(const User& user, const std::vector<std::string>& folders);

// A child of glue's own that works on a user's files and reports once, unless it is killed. Whoever drives it
// reaps it, and keeps the time.
class Worker {
 public:
  Worker() = default;
  Worker(pid_t pid, Fd report) : pid_(pid), report_(std::move(report)) {}

  pid_t pid() const { return pid_; }  // -1: none
  void kill() const {
    if (pid_ > 0) signal_child(pid_, SIGKILL);
  }
  // It was reaped: what it has told, if it came to that.
  template <typename Report>
  std::optional<Report> ended() {
    Report report;
    const bool whole = read_record(report_, &report) == Record::whole;
    *this = {};
    return whole ? std::optional(report) : std::nullopt;
  }

 private:
  pid_t pid_ = -1;
  Fd report_;
};

// Nothing where there can be no child.

struct Cleaned {
  std::uint32_t removed = 0;  // files, folders and IPC objects
  bool complete = true;
};
// Removes what is the user's, with the user's own rights, since root has no CAP_DAC_OVERRIDE here, or with
// root's. Of its time limit, a small part goes to other users' folders.
std::optional<Worker> start_cleaner(const User& user, const std::vector<std::string>& folders, bool as_root,
                                    Milliseconds limit);

// The same, of files only, out of reach of the user's signals.
std::optional<Worker> start_remover(const User& user, const std::vector<std::string>& folders);

struct Counted {
  std::int64_t kib = 0;
  bool complete = true;  // false: it is at least so much
};
// Adds up what is the user's on disk, at low priority and for no longer than limit: with the user's rights to
// files, but out of reach of the user's signals. What is deleted but still open has no name and is not
// counted.
std::optional<Worker> start_counter(const User& user, const std::vector<std::string>& folders,
                                    Milliseconds limit);

}  // namespace glidepod::glue
