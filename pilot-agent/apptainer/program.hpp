#pragma once

#include <cstdint>
#include <string>

#include "lib/base/fd.hpp"
#include "lib/base/result.hpp"

namespace glidepod::apptainer {

// What the image's name on the command line stands for.
enum class ImageKind : std::uint8_t { registry, directory };

// A name with "://" is a registry's, for the agent to judge. Anything else is a path, as for the real
// apptainer: a directory is one, and a file or nothing at all is an error that says what can be used instead.
Result<ImageKind> kind_of_image(const std::string& image);

// Opens the program that a command names in a directory image, never leaving the directory on the way. It has
// to be a statically linked ELF program: HTCondor probes a container runtime with such programs, and nothing
// else of the pilot's file system exists where it will run.
Result<Fd> open_program(const std::string& image, const std::string& name);

}  // namespace glidepod::apptainer
