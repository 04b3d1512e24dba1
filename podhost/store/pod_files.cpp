#include "podhost/store/pod_files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "lib/base/file.hpp"
#include "lib/base/json.hpp"
#include "lib/base/log.hpp"

namespace glidepod::podhost {
namespace {

using Json = nlohmann::json;

Result<void> make_folder(const std::string& path, unsigned mode) {
  if (mkdir(path.c_str(), mode) != 0 && errno != EEXIST) return Error::system("create {}", path);
  return {};
}

// The kernel writes blanks in mount points as octal escapes.
std::string unescape(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      result += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      result += text[i];
    }
  }
  return result;
}

std::vector<std::string> mounts_below(const std::string& folder) {
  std::vector<std::string> found;
  const auto table = read_file("/proc/self/mounts", std::size_t{64} << 20);
  if (!table) return found;
  std::string_view rest = table.value();
  while (!rest.empty()) {
    const auto line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const auto first = line.find(' ');
    if (first == std::string_view::npos) continue;
    const auto point = unescape(line.substr(first + 1, line.find(' ', first + 1) - first - 1));
    if (point.starts_with(folder + "/")) found.push_back(point);
  }
  return found;
}

}  // namespace

Result<void> PodFiles::prepare() const {
  const std::string state_dir = root_.substr(0, root_.rfind('/'));
  TRY(make_folder(state_dir, 0711));
  struct stat status {};
  if (stat(state_dir.c_str(), &status) != 0) return Error::system("stat {}", state_dir);
  if (status.st_uid != geteuid() || (status.st_mode & 022) != 0) {
    return error("{} must belong to podhost's user and be writable by nobody else", state_dir);
  }
  return make_folder(root_, 0711);
}

std::string PodFiles::volume(const std::string& uid, const std::string& name) const {
  return folder(uid) + "/volumes/" + name;
}

std::string PodFiles::message_file(const std::string& uid, const std::string& container, int attempt) const {
  return fmt::format("{}/messages/{}.{}", folder(uid), container, attempt);
}

std::string PodFiles::log_file(const std::string& uid, const std::string& container, int attempt) const {
  return fmt::format("{}/logs/{}.{}", folder(uid), container, attempt);
}

Result<void> PodFiles::save_spec(const Json& pod) const {
  const std::string uid = pod.at("metadata").at("uid").get<std::string>();
  // A container's user must be able to pass through to a volume; only podhost may list or read the rest.
  for (const auto& [name, mode] :
       {std::pair{"", 0711U}, {"/volumes", 0711U}, {"/messages", 0711U}, {"/logs", 0700U}}) {
    TRY(make_folder(folder(uid) + name, mode));
  }
  Json kept = pod;
  kept.erase("status");
  return replace_file(folder(uid) + "/pod.json", json_text(kept, 1), 0600);
}

Result<void> PodFiles::save_status(const std::string& uid, const Json& status) const {
  const std::string path = folder(uid) + "/status.json";
  const std::string fresh = path + ".new";
  const Fd fd = TRY(open_file(fresh, O_WRONLY | O_CREAT | O_TRUNC, 0600));
  if (const auto written = write_all(fd, json_text(status)); !written) {
    unlink(fresh.c_str());
    return written.error();
  }
  if (rename(fresh.c_str(), path.c_str()) != 0) return Error::system("rename {}", fresh);
  return {};
}

Result<void> PodFiles::remove_tree(const std::string& folder) {
  const auto mounts = mounts_below(folder);
  for (auto point = mounts.rbegin(); point != mounts.rend(); ++point) {
    if (umount2(point->c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) != 0)
      return Error::system("unmount {}", *point);
  }
  std::error_code failure;
  std::filesystem::remove_all(folder, failure);
  if (failure) return Error("remove " + folder, failure.value());
  return {};
}

void PodFiles::erase(const std::string& uid) const {
  // pod.json goes first: whatever happens next, a restart takes the rest for litter.
  unlink((folder(uid) + "/pod.json").c_str());
  if (const auto removed = remove_tree(folder(uid)); !removed) {
    spdlog::error("event=pod_folder_not_removed uid={} error={}", uid,
                  glidepod::quoted(removed.error().message()));
  }
}

std::vector<Json> PodFiles::load() const {
  std::vector<Json> pods;
  std::error_code failure;
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(root_, failure))
    names.push_back(entry.path().filename());
  for (const auto& uid : names) {
    const auto text = read_file(folder(uid) + "/pod.json");
    Json pod = text ? json_from(text.value()) : Json();
    const bool usable =
        pod.is_object() && pod.contains("metadata") && pod["metadata"].value("uid", "") == uid;
    if (!usable && text) {
      spdlog::error("event=pod_file_unreadable path={}/pod.json", folder(uid));
      continue;
    }
    if (!usable) {
      spdlog::warn("event=stray_folder_removed path={}", folder(uid));
      erase(uid);
      continue;
    }
    const auto status_text = read_file(folder(uid) + "/status.json");
    Json status = status_text ? json_from(status_text.value()) : Json();
    pod["status"] = status.is_object() ? std::move(status) : Json{{"phase", "Pending"}};
    pods.push_back(std::move(pod));
  }
  return pods;
}

}  // namespace glidepod::podhost
