#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace glidepod::glue {

// The environment that the container was started with, with nullptr at its end. start.cpp sets it, and leaves
// glue's own environment empty, so that no setting in an image has an effect on glue. Without start.cpp, as
// in tests, it is the program's own environment.
const char* const* environment_of_image();
extern char** of_the_image;
// From now on it is this one.
void lend_environment(std::vector<std::string> entries);

// What a job's environment gets if the message does not say otherwise.
struct Identity {
  std::string home;  // empty: the image's own HOME stays
  std::string user_name;
  std::string cwd;
};

// The job's environment: the variables of the image without those of Kubernetes and Glidepod, and those of
// the message, which win. own: the image's, with nullptr at its end. PATH has a default.
// SING_USER_DEFINED_PREPEND_PATH and _APPEND_PATH in the message extend it (apptainer's own names for
// APPTAINERENV_PREPEND_PATH and _APPEND_PATH).
std::vector<std::string> merge_environment(const char* const* own, const std::vector<std::string>& job,
                                           const Identity& identity);

// The value of a variable; empty if there is none.
std::string_view variable(const std::vector<std::string>& environment, std::string_view name);

// The files to try for a program, in order: only the program itself if its name has a slash, else one for
// each folder of the path.
std::vector<std::string> program_candidates(const std::string& program, std::string_view path);

}  // namespace glidepod::glue
