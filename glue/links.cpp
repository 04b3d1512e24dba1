#include "glue/links.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "glue/events.hpp"
#include "lib/base/beneath.hpp"
#include "lib/base/text.hpp"

namespace glidepod::glue {

namespace {

// What makes an image work, and what the container runtime puts there. A link from below these could change
// which program or setting is used; no job needs one.
constexpr std::array<std::string_view, 15> k_forbidden = {"/bin", "/boot",  "/dev",   "/etc",    "/glidepod",
                                                          "/lib", "/lib32", "/lib64", "/libx32", "/proc",
                                                          "/run", "/sbin",  "/sys",   "/usr",    "/var/run"};

// A job may write to these, and they may be mounts of their own; all else is the image's.
constexpr std::array<std::string_view, 2> k_own_trees = {"/var/tmp", "/tmp"};

// A job may choose the path (container_target_dir), and what the image has there is the same on every node.
Error of_image(const Error& why) {
  static constexpr std::array k_codes = {ELOOP, ENOTDIR, EACCES, EPERM, EROFS, ENAMETOOLONG};
  const bool users = std::ranges::find(k_codes, why.code()) != k_codes.end();
  return why.fact<wire::Fault>() != nullptr || !users ? why : why.with(wire::Fault::user);
}

// A folder without links on its way, in the image's own file system or below /tmp.
Fd open_folder(const std::string& path) {
  for (const auto tree : k_own_trees)
    if (is_inside(path, std::string(tree))) {
      Fd top = open_tree(std::string(tree), O_PATH);
      // Else the error is that of this one: a link or a file of the image, say.
      return top ? open_beneath(top, "." + path.substr(tree.size()), O_PATH | O_DIRECTORY) : std::move(top);
    }
  return open_beneath(open_tree("/", O_PATH), path, O_PATH | O_DIRECTORY);
}

std::string parent_of(const std::string& path) {
  return path.substr(0, std::max<std::size_t>(path.rfind('/'), 1));
}
std::string name_of(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

bool is_plain_path(const std::string& path) {
  if (path.size() < 2 || path.size() >= 4096 || path[0] != '/' || path.find('\0') != std::string::npos)
    return false;
  const auto parts = split(std::string_view(path).substr(1), '/');
  return std::ranges::none_of(
      parts, [](const std::string& part) { return part.empty() || part == "." || part == ".."; });
}

bool is_inside(const std::string& path, const std::string& folder) {
  return path == folder || (path.starts_with(folder) && path[folder.size()] == '/');
}

Result<void> check_link(const wire::Link& link, const std::string& scratch) {
  if (!is_plain_path(link.path))
    return error("link {}: not a plain absolute path", one_line(link.path)).with(wire::Fault::user);
  if (!is_plain_path(link.target) || !is_inside(link.target, scratch))
    return error("link {}: its target {} is not inside {}", link.path, one_line(link.target), scratch);
  const bool forbidden =
      is_inside(link.path, scratch) || std::ranges::any_of(k_forbidden, [&](std::string_view folder) {
        return is_inside(link.path, std::string(folder));
      });
  if (forbidden)
    return error("link {}: a link there could change what the image runs; name another path", link.path)
        .with(wire::Fault::user);
  return {};
}

wire::Fault fault_of(const Error& error) {
  const auto* fault = error.fact<wire::Fault>();
  return fault != nullptr ? *fault : wire::Fault::infrastructure;
}

Result<void> Links::make(const std::vector<wire::Link>& links, const std::string& scratch) {
  for (const auto& link : links) TRY(check_link(link, scratch));
  for (const auto& link : links) {
    auto made = make_one(link);
    if (!made) {
      undo();
      return of_image(made.error());
    }
  }
  return {};
}

Result<void> Links::make_one(const wire::Link& link) {
  // The way there: folders that the image does not have are made, and taken away again.
  for (auto slash = link.path.find('/', 1); slash != std::string::npos;
       slash = link.path.find('/', slash + 1)) {
    const std::string folder = link.path.substr(0, slash);
    if (open_folder(folder)) continue;
    if (errno != ENOENT) {
      if (errno == EXDEV)
        return error("link {}: a volume is mounted at {}; name a folder of the image", link.path, folder)
            .with(wire::Fault::user);
      return Error::system("link {}: open {} of the image", link.path, folder);
    }
    TRY(make_folder(open_folder(parent_of(folder)), name_of(folder), 0755).in("link " + link.path));
    made_.push_back({.path = folder, .target = ""});
  }
  const Fd parent = open_folder(parent_of(link.path));
  if (!parent) return Error::system("link {}: open its folder", link.path);
  const std::string name = name_of(link.path);
  Made made{.path = link.path, .target = link.target};
  struct stat info {};
  if (::fstatat(parent.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) {
    if (S_ISLNK(info.st_mode) && link_at(parent, name) == link.target) return {};
    if (!S_ISDIR(info.st_mode))
      return error("link {}: the image has a file there", link.path).with(wire::Fault::user);
    if (const auto removed = remove_entry(parent, name, AT_REMOVEDIR); !removed)
      return removed.error()
          .in(fmt::format("link {}: the image has a folder there that cannot be replaced", link.path))
          .with(wire::Fault::user);
    made.replaced = true;
    made.mode = info.st_mode & 07777;
  }
  made_.push_back(made);  // first: whatever happens now, undo() puts the folder back
  return make_link(parent, name, link.target).in("link " + link.path);
}

void Links::undo() {
  for (; !made_.empty(); made_.pop_back()) {
    const Made& made = made_.back();
    const Fd parent = open_folder(parent_of(made.path));
    const std::string name = name_of(made.path);
    if (!parent) continue;
    if (made.target.empty()) {
      (void)remove_entry(parent, name, AT_REMOVEDIR);
      continue;
    }
    if (link_at(parent, name) == made.target) (void)remove_entry(parent, name);
    if (!made.replaced) continue;
    if (const auto restored = make_folder(parent, name, made.mode); !restored)
      say("event=folder_not_restored path={} reason={}", value(made.path), value(restored.error().message()));
  }
}

}  // namespace glidepod::glue
