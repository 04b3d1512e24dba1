#pragma once

#include <sys/signalfd.h>

#include <string>
#include <vector>

namespace glidepod::glue {

// The signals that are orders to end. A container runtime sends the image's STOPSIGNAL first, and that may be
// any signal. So these are all signals that end a program by default, and SIGWINCH, which httpd's image
// names.
std::vector<int> stop_signals();

// False for a signal that this process has caused itself, such as SIGPIPE by its log.
bool is_order_to_end(const signalfd_siginfo& info);

// "SIGTERM", "SIGRTMIN+3".
std::string signal_name(int number);

}  // namespace glidepod::glue
