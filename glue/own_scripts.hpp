#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/fd.hpp"
#include "lib/wire/messages.hpp"

namespace glidepod::glue {

// What Apptainer starts where an image is to run by itself, the first of them that may be executed.
inline constexpr std::array<const char*, 3> k_runscripts = {"/.singularity.d/runscript", "/apptainer",
                                                            "/bin/sh"};
// The variable that names an app of the image, whose runscript it then is.
inline constexpr std::string_view k_app = "SINGULARITY_APPNAME";
// Those of a job with this environment.
std::vector<std::string> runscripts(const std::vector<std::string>& environment);

// The image's shell for scripts that take one: bash before sh, since Apptainer's own interpreter knows most
// of bash. Empty: it has none. root: the image's root folder.
std::string shell_of(const Fd& root);

// The launch as one of the image's shell, which reads /.singularity.d/env/*.sh as Apptainer does, then sets
// the job's variables, then executes what is to be launched.
wire::Launch through_shell(const wire::Launch& launch, const std::string& shell);

}  // namespace glidepod::glue
