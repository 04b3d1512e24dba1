#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

namespace glidepod::explore {

// Memory that this process and those that it forks have in common, all zero.
template <typename T>
T* shared(std::size_t count = 1) {
  void* memory = ::mmap(nullptr, sizeof(T) * count, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  return static_cast<T*>(memory);
}

// The states that were seen, by their digests, in all processes. It has 2^bits places of 8 bytes, and must
// not become full.
class Table {
 public:
  explicit Table(unsigned bits) : mask_((std::uint64_t{1} << bits) - 1), places_(shared<Place>(mask_ + 1)) {}

  // Whether it was not there yet.
  bool insert(std::uint64_t digest) {
    for (std::uint64_t i = digest & mask_;; i = (i + 1) & mask_) {
      std::uint64_t there = places_[i].load(std::memory_order_relaxed);
      if (there == 0 && places_[i].compare_exchange_strong(there, digest, std::memory_order_relaxed))
        return true;
      if (there == digest) return false;
    }
  }

 private:
  using Place = std::atomic<std::uint64_t>;
  std::uint64_t mask_;
  Place* places_;
};

}  // namespace glidepod::explore
