#include "glue/install.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/file.hpp"

namespace glidepod::glue {

namespace {

Result<void> make_folder(const std::string& path, mode_t mode) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return Error::system("create {}", path);
  const Fd fd = TRY(open_file(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  if (::fchmod(fd.get(), mode) != 0) return Error::system("set the mode of {}", path);
  return {};
}

// What a job that is itself a pilot starts its own jobs by. Where the pilot does not run as root, it cannot
// be read, and there are no such jobs.
Result<void> install_apptainer(const std::string& folder) {
  const auto program = read_file("/usr/bin/apptainer");
  if (!program) return {};
  TRY(replace_file(folder + "/apptainer", *program, 0711));
  const std::string link = folder + "/singularity";
  if (::symlink("apptainer", link.c_str()) != 0 && errno != EEXIST) return Error::system("create {}", link);
  return {};
}

}  // namespace

Result<void> install(const std::string& directory) {
  struct Folder {
    const char* name;
    mode_t mode;
  };
  for (const auto& [name, mode] : {Folder{"/bin", 0755}, Folder{"/run", 0700}, Folder{"/scratch", 0755}})
    TRY(make_folder(directory + name, mode));
  const std::string path = directory + "/bin/glue";
  const std::string program = TRY(read_file("/proc/self/exe"));
  TRY(replace_file(path, program, 0555));
  if (TRY(read_file(path)) != program) return error("{} does not hold what was written", path);
  return install_apptainer(directory + "/bin");
}

}  // namespace glidepod::glue
