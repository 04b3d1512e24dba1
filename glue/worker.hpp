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

// Looks briefly, without a child. True: the user owns something below the folders, or there is too much to be
// sure.
bool may_have_files(const User& user, const std::vector<std::string>& folders);
// Like may_have_files(), but also true if the user has System V IPC objects.
bool may_have_left(const User& user, const std::vector<std::string>& folders);

// One of glue's own children, which works on a user's files and reports once, unless it is killed. The caller
// reaps it and keeps the time.
class Worker {
 public:
  Worker() = default;
  Worker(pid_t pid, Fd report) : pid_(pid), report_(std::move(report)) {}

  pid_t pid() const { return pid_; }  // -1: there is no child
  void kill() const {
    if (pid_ > 0) signal_child(pid_, SIGKILL);
  }
  // To be called when the child was reaped. Returns its report, if it made one.
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

// The next functions return nothing if no child can be made.

struct Cleaned {
  std::uint32_t removed = 0;  // files, folders and IPC objects
  bool complete = true;
};
// Starts a child that removes what the user owns, with root's rights (as_root) or with the user's own, since
// root has no CAP_DAC_OVERRIDE here. A small part of its time limit is for other users' folders.
std::optional<Worker> start_cleaner(const User& user, const std::vector<std::string>& folders, bool as_root,
                                    Milliseconds limit);

// Like start_cleaner(), but removes only files, and the user's signals do not reach the child.
std::optional<Worker> start_remover(const User& user, const std::vector<std::string>& folders);

struct Counted {
  std::int64_t kib = 0;
  bool complete = true;  // false: there is at least this much
};
// Starts a child that adds up what the user has on disk, at low priority and for at most `limit`. It has the
// user's rights to files, but the user's signals do not reach it. A file that is deleted but still open has
// no name and is not counted.
std::optional<Worker> start_counter(const User& user, const std::vector<std::string>& folders,
                                    Milliseconds limit);

}  // namespace glidepod::glue
