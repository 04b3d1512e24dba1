// The job of the image cases: says what a job finds, in any image. Exit code 4: it has no folder of its own.
// "env NAME" as arguments, also several times, prints that variable.
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char* first_line(const char* path, char* line, int size) {
  FILE* file = fopen(path, "re");
  if (file == NULL) return NULL;
  char* got = fgets(line, size, file);
  fclose(file);
  if (got != NULL) line[strcspn(line, "\n")] = 0;
  return got;
}

// Without the C library's own way, which a static program does not have.
static int has_name(unsigned uid) {
  char line[4096];
  char wanted[32];
  int found = 0;
  FILE* file = fopen("/etc/passwd", "re");
  snprintf(wanted, sizeof wanted, ":x:%u:", uid);
  while (file != NULL && !found && fgets(line, sizeof line, file) != NULL)
    found = strstr(line, wanted) != NULL;
  if (file != NULL) fclose(file);
  return found;
}

static int can_write(const char* folder) {
  char path[PATH_MAX + 32];
  snprintf(path, sizeof path, "%s/look-%ld", folder, (long)getpid());
  int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return 0;
  close(file);
  return unlink(path) == 0;
}

int main(int argc, char** argv) {
  char line[4096];
  char here[PATH_MAX] = "";
  char own[PATH_MAX] = "";
  const char* scratch = getenv("_CONDOR_SCRATCH_DIR");
  const char* home = getenv("HOME");
  const int has_folder = scratch != NULL && realpath(scratch, own) != NULL &&
                         getcwd(here, sizeof here) != NULL && strcmp(here, own) == 0 && can_write(".");
  if (first_line("/etc/image-name", line, sizeof line) != NULL) printf("image %s\n", line);
  printf("user %s\n", has_name(getuid()) ? "yes" : "no");
  printf("folder %s\n", has_folder ? "own" : here);
  printf("tmp %s\n", can_write("/tmp") ? "writable" : "closed");
  printf("home %s\n", home != NULL && realpath(home, here) != NULL && strcmp(here, own) == 0 ? "own" : home);
  for (int i = 1; i + 1 < argc; i += 2) {
    const char* value = getenv(argv[i + 1]);
    if (strcmp(argv[i], "env") == 0) printf("env %s %s\n", argv[i + 1], value != NULL ? value : "(unset)");
  }
  return has_folder ? 0 : 4;
}
