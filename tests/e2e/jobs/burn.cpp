// A job that knows what it used: keeps a core busy in user mode and MEMORY MiB resident for SECONDS, then
// prints its own CPU seconds and peak memory for the test to hold HTCondor's figures against.
#include <sys/resource.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const long seconds = std::strtol(argv[1], nullptr, 10);
  std::vector<char> memory(std::strtoul(argv[2], nullptr, 10) << 20, 1);
  const time_t end = time(nullptr) + seconds;
  volatile unsigned long sum = 0;
  while (time(nullptr) < end)
    for (std::size_t i = 0; i < memory.size(); i += 64) sum = sum + static_cast<unsigned char>(memory[i]);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("user_seconds=%ld.%06ld peak_kib=%ld\n", usage.ru_utime.tv_sec, usage.ru_utime.tv_usec,
              usage.ru_maxrss);
  return 0;
}
