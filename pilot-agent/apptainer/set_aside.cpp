#include "pilot-agent/apptainer/set_aside.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string_view>

#include "lib/base/file.hpp"
#include "lib/base/text.hpp"

namespace glidepod::apptainer {

namespace {

constexpr std::size_t k_longest_name = 64;
constexpr std::size_t k_at_a_time = 1000;

// Made by the starter itself, which knows that it is no file.
constexpr const char* k_starters_socket = ".docker_sock";

// A link counts as what it leads to. One that leads nowhere is left to HTCondor, which finds nothing to open.
bool comes_back(const Fd& folder, const char* name) {
  struct stat found {};
  return ::fstatat(folder.get(), name, &found, 0) != 0 || S_ISREG(found.st_mode) || S_ISDIR(found.st_mode) ||
         (S_ISSOCK(found.st_mode) && std::string_view(name) == k_starters_socket);
}

std::vector<std::string> names_of_others(const Fd& folder) {
  std::vector<std::string> names;
  const auto closing = [](DIR* list) { ::closedir(list); };
  const std::unique_ptr<DIR, decltype(closing)> list(
      ::fdopendir(::openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)), closing);
  while (const dirent* entry = list && names.size() < k_at_a_time ? ::readdir(list.get()) : nullptr) {
    // Nearly all are files or folders, and the list says so.
    if (entry->d_type == DT_REG || entry->d_type == DT_DIR) continue;
    if (!comes_back(folder, entry->d_name)) names.emplace_back(entry->d_name);
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

SetAside set_aside(const std::string& sandbox) {
  SetAside told;
  const auto folder = open_file(sandbox, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!folder) return told;
  auto names = names_of_others(*folder);
  if (names.empty()) return told;
  // The job may have closed its folder to itself.
  struct stat found {};
  if (::fstat(folder->get(), &found) == 0 && (found.st_mode & 0700) != 0700)
    (void)::fchmod(folder->get(), (found.st_mode & 07777) | 0700);
  ::mkdirat(folder->get(), k_set_aside, 0700);
  const Fd aside(::openat(folder->get(), k_set_aside, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  for (bool goes_on = true; goes_on && !names.empty(); names = names_of_others(*folder)) {
    goes_on = false;
    for (const auto& name : names) {
      // There is nothing in it that could be lost.
      goes_on |= (aside && ::renameat(folder->get(), name.c_str(), aside.get(), name.c_str()) == 0) ||
                 ::unlinkat(folder->get(), name.c_str(), 0) == 0;
      ++told.count;
      if (told.names.size() < k_most_named)
        told.names.push_back(harmless(std::string_view(name).substr(0, k_longest_name)));
    }
  }
  return told;
}

}  // namespace glidepod::apptainer
