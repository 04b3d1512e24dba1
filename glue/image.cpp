#include "glue/image.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <functional>

#include "glue/env_scripts.hpp"
#include "glue/environment.hpp"
#include "glue/events.hpp"
#include "glue/own_scripts.hpp"
#include "lib/base/beneath.hpp"

namespace glidepod::glue {

namespace {

// What is there stays as it is. Where a link leads out of the image, into a volume say, there is none.
void make_folders(const Fd& root) {
  (void)make_folder(root, "tmp", 01777);
  (void)make_folder(root, "var", 0755);
  const Fd var = open_beneath(root, "var", O_PATH | O_DIRECTORY, Through::links);
  if (var) (void)make_folder(var, "tmp", 01777);
}

// Root has no right here to write into a folder that is closed to its owner; its own it may open. Podman
// makes the root folder so where no layer has one.
void while_open(const Fd& folder, const std::function<void()>& change) {
  struct stat info {};
  const bool closed = ::fstat(folder.get(), &info) == 0 && info.st_uid == 0 && (info.st_mode & 0200) == 0;
  if (closed) (void)set_mode(folder, (info.st_mode & 07777) | 0200);
  change();
  if (closed) (void)set_mode(folder, info.st_mode & 07777);
}

}  // namespace

// An image made of an Apptainer one has its variables in files.
void Image::lend_scripts(const Fd& root) {
  const auto scripts = read_env_scripts(root);
  if (scripts.empty()) return;
  std::vector<std::string> environment;
  for (const auto* entry = environment_of_image(); *entry != nullptr; ++entry)
    environment.emplace_back(*entry);
  auto read = with_env_scripts(std::move(environment), scripts);
  if (!read.whole) shell_ = shell_of(root);
  if (shell_.empty()) lend_environment(std::move(read.environment));
  say("event=env_scripts files={} read_by={}", scripts.size(), shell_.empty() ? "glue" : shell_);
}

wire::Launch Image::by_its_scripts(const wire::Launch& launch) const {
  return shell_.empty() || launch.program_attached ? launch : through_shell(launch, shell_);
}

void Image::prepare(const wire::Launch& launch) {
  if (!std::exchange(prepared_, true)) {
    const Fd root = open_tree("/", O_PATH);
    while_open(root, [&] {
      make_folders(root);
      accounts_ = Accounts(root);
    });
    lend_scripts(root);
  }
  // A job runs without a name too, so this failing (a read-only image, say) is only worth a line.
  const auto added = accounts_.add(launch.user_name, launch.uid, launch.gid, launch.home);
  if (!added) say("event=user_not_added job={} reason={}", launch.job, value(added.error().message()));
}

}  // namespace glidepod::glue
