#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>

namespace glidepod::mutants {

constexpr int k_most = 1 << 16;

// GLIDEPOD_MUTANT: its number. GLIDEPOD_MUTANTS_REACHED: a file of k_most bytes, in which each that is asked
// for is 1; shared, so that what a forked process reaches counts too.
inline const int active = [] {
  if (const char* number = std::getenv("GLIDEPOD_MUTANT"); number != nullptr) return std::atoi(number);
  // glue hides its environment from the C library (glue/start.cpp).
  const int fd = ::open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  std::string text(4096, '\0');
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(::read(fd, text.data(), text.size()), 0)));
  ::close(fd);
  const std::string name = "GLIDEPOD_MUTANT=";
  return text.starts_with(name) ? std::atoi(text.c_str() + name.size()) : -1;
}();
inline char* const reached = []() -> char* {
  const char* path = std::getenv("GLIDEPOD_MUTANTS_REACHED");
  const int fd = path == nullptr ? -1 : ::open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return nullptr;
  void* bytes = ::mmap(nullptr, k_most, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  return bytes == MAP_FAILED ? nullptr : static_cast<char*>(bytes);
}();

// Whether the program is to be this mutant.
inline bool on(int mutant) {
  if (reached != nullptr) reached[mutant] = 1;
  return mutant == active;
}

}  // namespace glidepod::mutants
