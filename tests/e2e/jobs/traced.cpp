// Makes whoever started it its tracer: from then on each signal stops it until the tracer lets it go on. With
// SIGUSR1 it exits 7; it sends that to itself, unless its argument is `wait`. What follows is for a test to
// find it by.
#include <signal.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include <cstring>

int main(int argc, char** argv) {
  signal(SIGUSR1, [](int) { _exit(7); });
  if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) return 1;
  if (argc < 2 || std::strcmp(argv[1], "wait") != 0) raise(SIGUSR1);
  while (true) pause();
}
