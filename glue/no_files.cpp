#include "glue/no_files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "lib/base/beneath.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text.hpp"

namespace glidepod::glue {

namespace {

constexpr std::size_t k_mount_point = 4;  // its place in a line

// A space, a tab, a line's end and a backslash stand there as \040 and so on.
std::string without_escapes(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '\\' && i + 3 < text.size();
    result += escape
                  ? static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + text[i + 3] - '0')
                  : text[i];
    if (escape) i += 3;
  }
  return result;
}

bool has_none_below(const Fd& folder, const std::string& path, const std::vector<std::string>& mounts) {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(::fcntl(folder.get(), F_DUPFD_CLOEXEC, 0)),
                                                    ::closedir);
  while (const dirent* entry = entries ? ::readdir(entries.get()) : nullptr) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    const std::string below = fmt::format("{}/{}", path, name);
    if (std::ranges::find(mounts, below) != mounts.end()) continue;
    if (below == "/etc/mtab") continue;  // a link that podman and CRI-O make
    const auto leads_to = [&](const std::string& mount) { return mount.starts_with(below + '/'); };
    if (!std::ranges::any_of(mounts, leads_to)) return false;
    if (!has_none_below(open_beneath(folder, name, O_RDONLY | O_DIRECTORY), below, mounts)) return false;
  }
  return entries != nullptr;
}

}  // namespace

bool has_no_file(const Fd& root, const std::vector<std::string>& mounts) {
  return has_none_below(root, "", mounts);
}

std::vector<std::string> mount_points(std::string_view mountinfo) {
  std::vector<std::string> result;
  for (const auto& line : split(mountinfo, '\n'))
    if (const auto words = split(line, ' '); words.size() > k_mount_point)
      result.push_back(without_escapes(words[k_mount_point]));
  return result;
}

bool image_has_no_file() {
  const auto mountinfo = read_file("/proc/self/mountinfo");
  return mountinfo && has_no_file(open_tree("/", O_RDONLY), mount_points(*mountinfo));
}

}  // namespace glidepod::glue
