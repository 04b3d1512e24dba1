#include "tests/explore/arena.hpp"

#include <sys/mman.h>

#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace glidepod::explore::arena {
namespace {

// At the beginning of the arena, so that it is saved with it. Pieces are of 32, 64, 128 ... bytes; what is
// free of each size is a list. Each piece begins with its size's number.
struct Head {
  std::size_t top = 0;
  void* free[32] = {};
};
constexpr std::size_t k_before = alignof(std::max_align_t);
constexpr unsigned k_smallest = 5;  // 32 bytes

char* g_begin = nullptr;
std::size_t g_size = 0;
bool g_inside = false;

Head& head() {
  return *reinterpret_cast<Head*>(g_begin);
}

bool holds(const void* pointer) {
  const auto* at = static_cast<const char*>(pointer);
  return at >= g_begin && at < g_begin + g_size;
}

void* take(std::size_t bytes) {
  const auto number = std::max(k_smallest, static_cast<unsigned>(std::bit_width(bytes + k_before - 1)));
  if (void* found = head().free[number]) {
    std::memcpy(&head().free[number], found, sizeof(void*));
    return found;
  }
  const std::size_t length = std::size_t{1} << number;
  if (head().top + length > g_size) {
    std::fputs("explore: the model has outgrown its memory\n", stderr);
    std::abort();
  }
  char* piece = g_begin + head().top;
  head().top += length;
  std::memcpy(piece, &number, sizeof number);
  return piece + k_before;
}

void give(void* pointer) {
  unsigned number = 0;
  std::memcpy(&number, static_cast<char*>(pointer) - k_before, sizeof number);
  std::memcpy(pointer, &head().free[number], sizeof(void*));
  head().free[number] = pointer;
}

}  // namespace

void open(std::size_t size) {
  void* memory =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  g_begin = static_cast<char*>(memory);
  g_size = size;
  new (g_begin) Head;
  head().top = (sizeof(Head) + k_before - 1) / k_before * k_before;
}

Scope::Scope() {
  g_inside = true;
}
Scope::~Scope() {
  g_inside = false;
}

void save(Saved& to) {
  to.assign(g_begin, g_begin + head().top);
}

void restore(const Saved& from) {
  std::memcpy(g_begin, from.data(), from.size());
}

}  // namespace glidepod::explore::arena

void* operator new(std::size_t bytes) {
  namespace arena = glidepod::explore::arena;
  if (arena::g_inside) return arena::take(bytes);
  if (void* got = std::malloc(bytes == 0 ? 1 : bytes)) return got;
  std::abort();
}

void operator delete(void* pointer) noexcept {
  namespace arena = glidepod::explore::arena;
  if (pointer == nullptr) return;
  if (arena::g_begin != nullptr && arena::holds(pointer)) return arena::give(pointer);
  std::free(pointer);
}

void operator delete(void* pointer, std::size_t) noexcept {
  ::operator delete(pointer);
}
