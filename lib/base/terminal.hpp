#pragma once

#include <cstddef>

namespace glidepod {

// How a text for people is to look. In a file or a pipe it has no color and may have any width.
struct Terminal {
  std::size_t width = 0, height = 0;  // 0: no limit
  bool color = false;

  // The terminal behind a descriptor. COLUMNS wins over the terminal's own width. NO_COLOR and TERM=dumb mean
  // no color.
  static Terminal of(int fd);
};

}  // namespace glidepod
