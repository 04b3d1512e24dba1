#include "glue/program_file.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>

#include "lib/base/fd.hpp"

namespace glidepod::glue {
namespace {

constexpr int k_most_scripts = 5;  // as the kernel: a script's interpreter may be a script

Fd open_program(const char* file) {
  return Fd(::open(file, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

template <typename T>
bool read_at(const Fd& file, std::uint64_t offset, T& value) {
  return ::pread(file.get(), &value, sizeof value, static_cast<off_t>(offset)) == sizeof value;
}

bool holds_header(const char* loader, std::size_t header) {
  struct stat info {};
  return ::stat(loader, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size >= static_cast<off_t>(header);
}

template <typename Header, typename Part>
bool ends_early(const Fd& program, std::uint64_t size) {
  Header header{};
  if (!read_at(program, 0, header) || header.e_phentsize != sizeof(Part)) return false;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Part part{};
    const std::uint64_t at = header.e_phoff + i * sizeof part;
    if (at > size || size - at < sizeof part) return true;
    if (!read_at(program, at, part)) return false;
    if (part.p_type != PT_INTERP) continue;
    std::array<char, PATH_MAX> loader{};
    if (part.p_filesz < 2 || part.p_filesz > loader.size()) return false;
    if (part.p_offset > size || size - part.p_offset < part.p_filesz) return true;
    const auto got = ::pread(program.get(), loader.data(), part.p_filesz, static_cast<off_t>(part.p_offset));
    if (got != static_cast<ssize_t>(part.p_filesz) || loader[part.p_filesz - 1] != '\0') return false;
    return !holds_header(loader.data(), sizeof header);
  }
  return false;
}

}  // namespace

bool is_text(const char* file) {
  std::array<char, 256> begin{};
  const Fd program = open_program(file);
  const ssize_t got = ::read(program.get(), begin.data(), begin.size());
  if (got < 0) return false;
  const char* const end = std::find(begin.data(), begin.data() + got, '\n');
  return std::find(static_cast<const char*>(begin.data()), end, '\0') == end;
}

void read_interpreter(const char* file, std::span<char> interpreter) {
  std::array<char, 256> line{};
  const Fd program = open_program(file);
  const ssize_t got = ::read(program.get(), line.data(), line.size());
  if (got < 2 || line[0] != '#' || line[1] != '!') return;
  const char* const end = line.data() + got;
  const char* from = line.data() + 2;
  while (from < end && (*from == ' ' || *from == '\t')) ++from;
  for (std::size_t i = 0; i + 1 < interpreter.size() && from < end; ++i, ++from) {
    if (*from == '\0' || *from == '\n' || *from == ' ' || *from == '\t') return;
    interpreter[i] = *from;
  }
}

bool is_cut_short(const char* file) {
  std::array<char, PATH_MAX> interpreter{};
  for (int scripts = 0; scripts <= k_most_scripts; ++scripts) {
    const Fd program = open_program(file);
    if (!program) return errno == EACCES;
    std::array<unsigned char, EI_NIDENT> begin{};
    struct stat info {};
    if (::fstat(program.get(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
    if (::pread(program.get(), begin.data(), begin.size(), 0) < 0) return false;
    const auto size = static_cast<std::uint64_t>(info.st_size);
    if (std::memcmp(begin.data(), ELFMAG, SELFMAG) == 0)
      return begin[EI_CLASS] == ELFCLASS32 ? ends_early<Elf32_Ehdr, Elf32_Phdr>(program, size)
                                           : ends_early<Elf64_Ehdr, Elf64_Phdr>(program, size);
    std::array<char, PATH_MAX> next{};
    read_interpreter(file, next);
    if (next[0] == '\0') return false;
    interpreter = next;
    file = interpreter.data();
  }
  return false;
}

}  // namespace glidepod::glue
