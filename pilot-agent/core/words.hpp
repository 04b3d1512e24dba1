#pragma once

#include <signal.h>

#include <string>
#include <string_view>

#include "lib/base/log.hpp"
#include "lib/base/text.hpp"
#include "pilot-agent/core/image.hpp"

namespace glidepod::agent {

// The text as a value of a log line; an empty text becomes "-".
inline std::string word(std::string_view text) {
  return text.empty() ? "-" : quoted(one_line(text, 300));
}

// The image's name likewise; home becomes "-".
inline std::string word(const Image& image) {
  return word(image.name_or(""));
}

// Whether the default action of a signal is to end the process.
inline bool ends_a_process(int number) {
  switch (number) {
    case SIGCONT:
    case SIGSTOP:
    case SIGTSTP:
    case SIGTTIN:
    case SIGTTOU:
    case SIGCHLD:
    case SIGURG:
    case SIGWINCH:
      return false;
    default:
      return true;
  }
}

}  // namespace glidepod::agent
