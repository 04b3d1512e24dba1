#pragma once

#include <string>

#include "lib/base/fd.hpp"
#include "lib/base/result.hpp"

namespace glidepod::apptainer {

// Whether an image's name is that of a directory here, as the real apptainer's sandboxes are.
bool is_directory_image(const std::string& image);

// Opens the program that a command names in a directory image, never leaving the directory on the way. It has
// to be a statically linked ELF program: HTCondor probes a container runtime with such programs, and nothing
// else of the pilot's file system exists where it will run.
Result<Fd> open_program(const std::string& image, const std::string& name);

}  // namespace glidepod::apptainer
