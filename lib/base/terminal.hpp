#pragma once

#include <cstddef>

namespace glidepod {

// How a text for people is to look. Plain, and as wide as it comes, where it goes into a file or pipe.
struct Terminal {
  std::size_t width = 0, height = 0;  // 0: no limit
  bool color = false;

  // What is behind a descriptor. COLUMNS wins over what the terminal says; with NO_COLOR, or TERM=dumb, there
  // is no color.
  static Terminal of(int fd);
};

}  // namespace glidepod
