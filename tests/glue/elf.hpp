#pragma once

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "lib/base/fd.hpp"

namespace glidepod::glue::testing {

inline constexpr std::uint64_t k_loader_at = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr);

// An ELF file of this machine that names a loader, in so many bytes from there. The text comes at
// k_loader_at.
inline std::string elf_with_loader(const std::string& text, std::uint64_t at, std::uint64_t bytes) {
  Elf64_Ehdr header{};
  const Fd own(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  if (::read(own.get(), &header, sizeof header) != sizeof header) return {};
  header.e_type = ET_EXEC;
  header.e_phoff = sizeof header;
  header.e_phnum = 1;
  Elf64_Phdr part{};
  part.p_type = PT_INTERP;
  part.p_offset = at;
  part.p_filesz = bytes;
  std::string file(k_loader_at, '\0');
  std::memcpy(file.data(), &header, sizeof header);
  std::memcpy(file.data() + sizeof header, &part, sizeof part);
  return file + text;
}

}  // namespace glidepod::glue::testing
