#pragma once

#include <string>
#include <string_view>

#include "lib/base/child.hpp"
#include "lib/wire/messages.hpp"

namespace glidepod::apptainer {

// Exit codes of failures that are not the job's: 255 as of the real apptainer, 125 as of a container engine.
constexpr int k_user_fault = 255;
constexpr int k_infrastructure_fault = 125;

// The line for a failure. Of `test`, the first 255 bytes of output become the reason of the job's hold, so
// nothing stands before the message there; elsewhere it goes to the job's standard error and says whose it
// is. Names the image unless the message does.
std::string failure_line(wire::Verb verb, std::string_view image, std::string_view message);

// Ends this process as the job ended: with its exit code, or by its signal, leaving no core. A signal that
// cannot kill here (a container's first process is exempt) becomes the exit code 128+n.
[[noreturn]] void end_as(const ExitStatus& status);

}  // namespace glidepod::apptainer
