// A job that takes more than it asked for: memory, page cache, or memory in a child that it survives.
//
//   hungry eat MIB           keeps so much memory, and waits
//   hungry read MIB          writes a file of that size, reads it back and ends
//   hungry survive MIB CODE  has a child that eats, and ends with CODE once the child is gone
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr std::size_t k_mib = std::size_t{1} << 20;

void eat(std::size_t mib) {
  std::vector<char*> pieces;
  for (std::size_t i = 0; i < mib; ++i) {
    pieces.push_back(static_cast<char*>(std::malloc(k_mib)));
    std::memset(pieces.back(), 'x', k_mib);
  }
  std::printf("ate %zu\n", pieces.size());
  std::fflush(stdout);
  for (;;) ::pause();
}

int read_back(std::size_t mib) {
  std::vector<char> piece(k_mib, 'x');
  FILE* file = std::fopen("large", "w+");
  for (std::size_t i = 0; i < mib; ++i) std::fwrite(piece.data(), 1, k_mib, file);
  std::rewind(file);
  std::size_t got = 0;
  while (const std::size_t n = std::fread(piece.data(), 1, k_mib, file)) got += n;
  std::printf("read %zu\n", got / k_mib);
  return std::remove("large");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 2 ? argv[1] : "";
  const std::size_t mib = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 0;
  if (what == "eat") eat(mib);
  if (what == "read") return read_back(mib);
  if (what != "survive" || argc < 4) return 2;
  const pid_t child = ::fork();
  if (child == 0) eat(mib);
  int status = 0;
  ::waitpid(child, &status, 0);
  std::printf("survived a child with signal %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
  return std::atoi(argv[3]);
}
