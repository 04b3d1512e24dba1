#include "glue/cleanup.hpp"

#include <signal.h>

#include "glue/processes.hpp"
#include "glue/reports.hpp"

namespace glidepod::glue {

Cleaning::Cleaning(User user, Limits limits, std::vector<std::string> folders)
    : user_(std::move(user)), limits_(limits), folders_(std::move(folders)) {
  if (user_.uid != 0 && look_for(user_, folders_) != Found::nothing) begin(Stage::as_user);
}

Milliseconds Cleaning::limit() const {
  switch (stage_) {
    case Stage::as_user:
      return limits_.as_user;
    case Stage::as_root:
      return limits_.as_root;
    case Stage::killed_user:
    case Stage::killed_root:
      return limits_.to_die;
    case Stage::done:
      break;
  }
  return Milliseconds(0);
}

void Cleaning::begin(Stage stage) {
  auto cleaner = start_cleaner(user_, folders_, stage == Stage::as_root);
  if (!cleaner) return finish(false);
  cleaner_ = std::move(*cleaner);
  stage_ = stage;
}

bool Cleaning::ended(pid_t pid) {
  if (done() || pid != cleaner_.pid) return false;
  Cleaned cleaned;
  if (read_record(cleaner_.report, &cleaned) != Record::whole) cleaned = {0, false};
  result_.removed += cleaned.removed;
  if (stage_ == Stage::as_root || stage_ == Stage::killed_root)
    finish(cleaned.complete);
  else if (look_for(user_, folders_) == Found::nothing)
    finish(true);
  else
    begin(Stage::as_root);
  return true;
}

void Cleaning::overdue() {
  switch (stage_) {
    case Stage::as_user:
    case Stage::as_root:
      signal_child(cleaner_.pid, SIGKILL);
      stage_ = stage_ == Stage::as_user ? Stage::killed_user : Stage::killed_root;
      return;
    case Stage::killed_user:
    case Stage::killed_root:
      return finish(false);
    case Stage::done:
      return;
  }
}

void Cleaning::finish(bool complete) {
  stage_ = Stage::done;
  cleaner_ = {};
  result_.complete = complete;
}

}  // namespace glidepod::glue
