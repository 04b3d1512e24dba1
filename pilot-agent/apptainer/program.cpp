#include "pilot-agent/apptainer/program.hpp"

#include <elf.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

#include "lib/base/file.hpp"

namespace glidepod::apptainer {

namespace {

constexpr std::string_view k_what_works = "name an image of a registry, as docker://NAME";

// Whether a program needs nothing of the file system it starts in: an ELF file with no PT_INTERP.
Result<bool> is_static(const Fd& fd) {
  Elf64_Ehdr header{};
  const ssize_t got = ::pread(fd.get(), &header, sizeof header, 0);
  if (got < 0) return Error::system("read");
  if (got != sizeof header || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr))
    return false;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part{};
    const auto offset = static_cast<off_t>(header.e_phoff + i * sizeof part);
    if (::pread(fd.get(), &part, sizeof part, offset) != sizeof part) return false;
    if (part.p_type == PT_INTERP) return false;
  }
  return header.e_phnum > 0;
}

}  // namespace

bool is_directory_image(const std::string& image) {
  struct stat found {};
  return image.find("://") == std::string::npos && ::stat(image.c_str(), &found) == 0 &&
         S_ISDIR(found.st_mode);
}

Result<Fd> open_program(const std::string& image, const std::string& name) {
  const auto refused = [&](std::string_view why) {
    return error("{}: directories are not supported here as images ({} {}); {}", image, name, why,
                 k_what_works);
  };
  if (name.find('/') == std::string::npos) return refused("is not a path");
  const Fd root = TRY(open_file(image, O_PATH | O_DIRECTORY));
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;  // not to wait for the writer of a pipe
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  Fd fd(static_cast<int>(::syscall(SYS_openat2, root.get(), name.c_str(), &how, sizeof how)));
  if (!fd) return Error::system("{}: open {}", image, name);
  struct stat found {};
  if (::fstat(fd.get(), &found) != 0) return Error::system("{}: {}", image, name);
  if (!S_ISREG(found.st_mode) || (found.st_mode & 0111) == 0) return refused("is not a program");
  if (!TRY(is_static(fd).in(name))) return refused("is not a statically linked program");
  return fd;
}

}  // namespace glidepod::apptainer
