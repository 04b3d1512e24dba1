#include "glue/install.hpp"

#include <fcntl.h>

#include "glue/shm.hpp"
#include "lib/base/beneath.hpp"
#include "lib/base/file.hpp"

namespace glidepod::glue {

namespace {

Result<Fd> have_folder(const Fd& directory, const char* name, mode_t mode) {
  auto made = make_folder(directory, name, mode);
  if (made || made.error().code() != EEXIST) return made;
  Fd there = open_beneath(directory, name, O_RDONLY | O_DIRECTORY);
  if (!there) return Error::system("open {}", name);
  TRY(set_mode(there, mode).in(name));
  return there;
}

// What a job that is itself a pilot starts its own jobs by. Where the pilot does not run as root, it cannot
// be read, and there are no such jobs.
Result<void> install_apptainer(const Fd& bin, const std::string& path) {
  const auto program = read_file("/usr/bin/apptainer");
  if (!program) return {};
  TRY(replace_file(path + "/apptainer", *program, 0711));
  auto linked = make_link(bin, "singularity", "apptainer");
  return linked || linked.error().code() == EEXIST ? Result<void>() : linked;
}

}  // namespace

Result<void> install(const std::string& directory) {
  const Fd held = TRY(open_file(directory, O_PATH | O_DIRECTORY));
  const Fd bin = TRY(have_folder(held, "bin", 0755).in(directory));
  TRY(have_folder(held, "run", 0700).in(directory));
  TRY(have_folder(held, "scratch", 0755).in(directory));
  const std::string path = directory + "/bin/glue";
  const std::string program = TRY(read_file("/proc/self/exe"));
  TRY(replace_file(path, program, 0555));
  if (TRY(read_file(path)) != program) return error("{} does not hold what was written", path);
  TRY(note_pod_shm(directory + "/bin"));
  return install_apptainer(bin, directory + "/bin");
}

}  // namespace glidepod::glue
