#include "podhost/runtime/volumes.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "lib/base/file.hpp"
#include "lib/base/text.hpp"

namespace glidepod::podhost {
namespace {

Result<void> make_folder(const std::string& path, unsigned mode) {
  if (mkdir(path.c_str(), mode) != 0) {
    if (errno == EEXIST) return {};
    return Error::system("create {}", path);
  }
  // mkdir obeys the umask, which has nothing to say here.
  if (chmod(path.c_str(), mode) != 0) return Error::system("chmod {}", path);
  return {};
}

bool mounted(const std::string& path) {
  struct stat here {
  }, parent{};
  const std::string above = path.substr(0, path.rfind('/'));
  return stat(path.c_str(), &here) == 0 && stat(above.c_str(), &parent) == 0 && here.st_dev != parent.st_dev;
}

Result<void> empty_dir(const std::string& path, const Volume& volume, const PodSpec& pod) {
  TRY(make_folder(path, 0777));
  if (volume.in_memory && !mounted(path)) {
    std::string options = "mode=0777";
    if (volume.size_limit) options += ",size=" + std::to_string(*volume.size_limit);
    if (mount("tmpfs", path.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, options.c_str()) != 0) {
      return Error::system("mount tmpfs at {}", path);
    }
  }
  if (pod.fs_group) {
    if (chown(path.c_str(), static_cast<uid_t>(-1), static_cast<gid_t>(*pod.fs_group)) != 0 ||
        chmod(path.c_str(), 02777) != 0) {
      return Error::system("set the group of {}", path);
    }
  }
  return {};
}

Result<void> host_path(const Volume& volume) {
  const std::string& type = volume.host_path_type;
  const char* path = volume.host_path.c_str();
  struct stat status {};
  if (stat(path, &status) != 0) {
    if (errno != ENOENT) return Error::system("hostPath {}", volume.host_path);
    if (type.empty() || type == "DirectoryOrCreate") return make_folder(volume.host_path, 0755);
    if (type == "FileOrCreate") {
      TRY(open_file(volume.host_path, O_WRONLY | O_CREAT, 0644));
      return {};
    }
    return error("hostPath type check failed: {} does not exist", volume.host_path);
  }
  const mode_t mode = status.st_mode;
  const bool right = type.empty() || (type.starts_with("Directory") && S_ISDIR(mode)) ||
                     (type.starts_with("File") && S_ISREG(mode)) || (type == "Socket" && S_ISSOCK(mode)) ||
                     (type == "CharDevice" && S_ISCHR(mode)) || (type == "BlockDevice" && S_ISBLK(mode));
  if (!right) return error("hostPath type check failed: {} is not a {}", volume.host_path, type);
  return {};
}

Result<void> projected(const std::string& path, const Volume& volume, const PodSpec& pod,
                       const PodFacts& facts) {
  TRY(make_folder(path, 0755));
  for (const auto& file : volume.files) {
    std::string text;
    // All labels or annotations at once come as lines of key="value".
    for (const auto& [field, values] : {std::pair("metadata.labels", &facts.labels),
                                        std::pair("metadata.annotations", &facts.annotations)}) {
      if (file.field_path != field) continue;
      for (const auto& [key, value] : *values) text += fmt::format("{}=\"{}\"\n", key, value);
    }
    if (text.empty()) text = field_value(pod, file.field_path, facts);
    TRY(replace_file(path + "/" + file.path, text, 0644));
  }
  if (volume.api_socket) TRY(replace_file(path + "/namespace", pod.name_space, 0644));
  return {};
}

Result<Fd> open_in_root(const Fd& root, const std::string& path, std::uint64_t flags) {
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const auto fd = static_cast<int>(syscall(SYS_openat2, root.get(), path.c_str(), &how, sizeof how));
  if (fd < 0) return Error::system("open {}", path);
  return Fd(fd);
}

}  // namespace

Result<Fd> open_inside(const std::string& root_path, const std::string& path) {
  const Fd root = TRY(open_file(root_path, O_PATH | O_DIRECTORY));
  std::string done = ".";
  for (const auto& part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") return error("subPath {} must not contain '..'", path);
    const std::string here = fmt::format("{}/{}", done, part);
    if (auto found = open_in_root(root, here, O_PATH); !found) {
      if (found.error().code() != ENOENT) return found.error();
      const Fd parent = TRY(open_in_root(root, done, O_PATH | O_DIRECTORY));
      struct stat status {};
      if (fstat(root.get(), &status) != 0) return Error::system("stat {}", root_path);
      if (mkdirat(parent.get(), part.c_str(), status.st_mode & 07777) != 0 && errno != EEXIST) {
        return Error::system("create {}", here);
      }
      const Fd made = TRY(open_in_root(root, here, O_RDONLY | O_DIRECTORY));
      if (fchown(made.get(), status.st_uid, status.st_gid) != 0 ||
          fchmod(made.get(), status.st_mode & 07777) != 0) {
        return Error::system("set the mode of {}", here);
      }
    }
    done = here;
  }
  return open_in_root(root, done, O_PATH);
}

Result<void> prepare_volumes(const PodFiles& files, const PodSpec& pod, const PodFacts& facts) {
  for (const auto& [name, mode] :
       {std::pair("/volumes", 0711U), {"/messages", 0711U}, {"/subpaths", 0711U}, {"/logs", 0700U}}) {
    TRY(make_folder(files.folder(pod.uid) + name, mode));
  }
  for (const auto& volume : pod.volumes) {
    const std::string path = files.volume(pod.uid, volume.name);
    const std::string what = "volume " + volume.name;
    switch (volume.kind) {
      case Volume::Kind::empty_dir:
        TRY(empty_dir(path, volume, pod).in(what));
        break;
      case Volume::Kind::host_path:
        TRY(host_path(volume).in(what));
        break;
      case Volume::Kind::projected:
        TRY(projected(path, volume, pod, facts).in(what));
        break;
    }
  }
  return {};
}

Result<void> remove_volumes(const PodFiles& files, const std::string& uid) {
  TRY(PodFiles::remove_tree(files.folder(uid) + "/subpaths"));
  TRY(PodFiles::remove_tree(files.folder(uid) + "/messages"));
  return PodFiles::remove_tree(files.folder(uid) + "/volumes");
}

Result<std::vector<ResolvedMount>> resolve_mounts(const PodFiles& files, const PodSpec& pod,
                                                  const ContainerSpec& container) {
  std::vector<ResolvedMount> result;
  for (std::size_t i = 0; i < container.mounts.size(); ++i) {
    const VolumeMount& wanted = container.mounts[i];
    const auto volume = std::ranges::find(pod.volumes, wanted.name, &Volume::name);
    if (volume == pod.volumes.end()) return error("no volume {}", wanted.name);
    const std::string root =
        volume->kind == Volume::Kind::host_path ? volume->host_path : files.volume(pod.uid, volume->name);
    std::string source = root;
    if (!wanted.sub_path.empty()) {
      source = fmt::format("{}/subpaths/{}.{}", files.folder(pod.uid), container.name, i);
      const Fd inside = TRY(open_inside(root, wanted.sub_path).in("subPath " + wanted.sub_path));
      struct stat status {
      }, present{};
      if (fstat(inside.get(), &status) != 0) return Error::system("stat {}", wanted.sub_path);
      if (stat(source.c_str(), &present) != 0 || present.st_dev != status.st_dev ||
          present.st_ino != status.st_ino) {
        // Made anew, also where the pod has replaced what was pinned at an earlier start.
        if (umount2(source.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) != 0 && errno != EINVAL &&
            errno != ENOENT) {
          return Error::system("unmount {}", source);
        }
        if (S_ISDIR(status.st_mode)) {
          unlink(source.c_str());
          TRY(make_folder(source, 0700));
        } else {
          rmdir(source.c_str());
          TRY(open_file(source, O_WRONLY | O_CREAT, 0600));
        }
        const std::string from = "/proc/self/fd/" + std::to_string(inside.get());
        if (mount(from.c_str(), source.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) {
          return Error::system("bind {} to {}", wanted.sub_path, source);
        }
      }
    }
    // Projected volumes are podhost's to write: read-only for the pod, as in Kubernetes.
    const bool read_only = wanted.read_only || volume->kind == Volume::Kind::projected;
    result.push_back({source, wanted.mount_path, read_only});
  }
  return result;
}

}  // namespace glidepod::podhost
