#pragma once

#include <sys/signalfd.h>

#include <string>
#include <vector>

namespace glidepod::glue {

// The orders to end: what a container runtime may send first, since an image's STOPSIGNAL may be any signal.
// All that end a program that knows nothing of them, and SIGWINCH (httpd's).
std::vector<int> stop_signals();

// False for what this process has brought upon itself, as SIGPIPE by its log.
bool is_order_to_end(const signalfd_siginfo& info);

// "SIGTERM", "SIGRTMIN+3".
std::string signal_name(int number);

}  // namespace glidepod::glue
