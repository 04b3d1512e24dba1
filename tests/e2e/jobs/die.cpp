// A job that dies by the signal named as a number, or exits with the code after "exit".
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "exit") == 0) return std::atoi(argv[2]);
  if (argc != 2) return 2;
  kill(getpid(), std::atoi(argv[1]));
  pause();
}
