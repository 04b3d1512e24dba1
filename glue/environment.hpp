#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace glidepod::glue {

// The environment that the container was started with, nullptr at its end. The program's own is empty, so
// that no setting in an image means anything to it: start.cpp, which sets this. Without it, as in tests: its
// own.
const char* const* environment_of_image();
extern char** of_the_image;
// From now on it is this one.
void lend_environment(std::vector<std::string> entries);

// What a job's environment gets where the message does not say it.
struct Identity {
  std::string home;  // empty: the image's own HOME stays
  std::string user_name;
  std::string cwd;
};

// The job's environment: the image's (own, nullptr at its end) without what is Kubernetes' and Glidepod's,
// then the message's, which wins. PATH has a default; SING_USER_DEFINED_PREPEND_PATH and _APPEND_PATH of the
// message extend it (apptainer's own names for APPTAINERENV_PREPEND_PATH and _APPEND_PATH).
std::vector<std::string> merge_environment(const char* const* own, const std::vector<std::string>& job,
                                           const Identity& identity);

// The value of a variable, empty if it is not there.
std::string_view variable(const std::vector<std::string>& environment, std::string_view name);

// The files to try for a program, in order: itself if it has a slash, else one per folder of the path.
std::vector<std::string> program_candidates(const std::string& program, std::string_view path);

}  // namespace glidepod::glue
