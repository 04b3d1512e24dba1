#include "lib/base/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace glidepod {

Result<Fd> open_file(const std::string& path, int flags, unsigned mode) {
  Fd fd(::open(path.c_str(), flags | O_CLOEXEC, mode));
  if (!fd) return Error::system("open {}", path);
  return fd;
}

Result<std::string> read_all(const Fd& fd, std::string_view name, std::size_t limit) {
  std::string data;
  char buffer[16384];
  while (true) {
    const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error::system("read {}", name);
    if (got == 0) return data;
    data.append(buffer, static_cast<std::size_t>(got));
    if (data.size() > limit) return error("read {}: longer than {} bytes", name, limit);
  }
}

Result<std::string> read_file(const std::string& path, std::size_t limit) {
  const Fd fd = TRY(open_file(path, O_RDONLY));
  return read_all(fd, path, limit);
}

Result<void> write_all(const Fd& fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t put = ::write(fd.get(), data.data(), data.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return Error::system("write");
    data.remove_prefix(static_cast<std::size_t>(put));
  }
  return {};
}

namespace {
Result<void> write_new(const std::string& path, std::string_view data, unsigned mode, Durable durable) {
  const Fd fd = TRY(open_file(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, mode));
  TRY(write_all(fd, data));
  if (::fchmod(fd.get(), mode) != 0) return Error::system("chmod");
  if (durable == Durable::yes && ::fsync(fd.get()) != 0) return Error::system("fsync");
  return {};
}
}  // namespace

Result<void> replace_file(const std::string& path, std::string_view data, unsigned mode, Durable durable) {
  const std::string temporary = fmt::format("{}.{}.tmp", path, ::getpid());
  auto written = write_new(temporary, data, mode, durable);
  if (written && ::rename(temporary.c_str(), path.c_str()) != 0) written = Error::system("rename");
  if (!written) {
    ::unlink(temporary.c_str());
    return written.error().in(fmt::format("replace {}", path));
  }
  if (durable == Durable::no) return {};
  const auto slash = path.rfind('/');
  const Fd folder =
      TRY(open_file(slash == std::string::npos ? "." : path.substr(0, slash + 1), O_RDONLY | O_DIRECTORY));
  if (::fsync(folder.get()) != 0) return Error::system("fsync the folder of {}", path);
  return {};
}

}  // namespace glidepod
