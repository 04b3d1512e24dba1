#include "glue/cleanup.hpp"

namespace glidepod::glue {

Cleaning::Cleaning(User user, Limits limits, std::vector<std::string> folders)
    : user_(std::move(user)), limits_(limits), folders_(std::move(folders)) {
  if (user_.uid != 0 && may_have_left(user_, folders_)) begin(Stage::as_user);
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
  const bool as_root = stage == Stage::as_root;
  auto worker = start_cleaner(user_, folders_, as_root, as_root ? limits_.as_root : limits_.as_user);
  if (!worker) return finish(false);
  worker_ = std::move(*worker);
  stage_ = stage;
}

bool Cleaning::ended(pid_t pid) {
  if (pid != worker_.pid()) return false;
  const auto cleaned = worker_.ended<Cleaned>().value_or(Cleaned{0, false});
  result_.removed += cleaned.removed;
  if (stage_ == Stage::as_root || stage_ == Stage::killed_root)
    finish(cleaned.complete);
  else if (!may_have_left(user_, folders_))
    finish(true);
  else
    begin(Stage::as_root);
  return true;
}

void Cleaning::overdue() {
  if (stage_ == Stage::killed_user || stage_ == Stage::killed_root) return finish(false);
  worker_.kill();
  stage_ = stage_ == Stage::as_user ? Stage::killed_user : Stage::killed_root;
}

void Cleaning::finish(bool complete) {
  stage_ = Stage::done;
  result_.complete = complete;
}

}  // namespace glidepod::glue
