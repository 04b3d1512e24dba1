#pragma once

#include <sys/ioctl.h>
#include <termios.h>

#include <functional>
#include <optional>
#include <string>

#include "lib/base/fd.hpp"
#include "lib/base/loop.hpp"
#include "lib/base/result.hpp"

namespace glidepod::apptainer {

// The terminal that somebody sits at (standard input and output), joined to one of a payload container: its
// keys go there as they are, and what is written there is shown here.
class Terminal {
 public:
  explicit Terminal(Loop& loop) : loop_(loop) {}
  ~Terminal() { leave(); }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // The modes and size of the one here, for the one there.
  static std::string modes();
  static winsize size();

  Result<void> join(Fd other);
  void resize() const;
  // Shows what is still to be shown, and gives the terminal here its modes back.
  void leave();

 private:
  void on_keys();
  void on_room();
  void on_output();
  Result<void> show_some(bool* more);
  void stop_keys();

  Loop& loop_;
  Fd other_;
  std::string keys_;  // typed, not yet taken there
  bool keys_watched_ = false;
  std::optional<termios> own_modes_;
};

}  // namespace glidepod::apptainer
