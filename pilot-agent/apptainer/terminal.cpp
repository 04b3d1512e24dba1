#include "pilot-agent/apptainer/terminal.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <string_view>

namespace glidepod::apptainer {

namespace {

constexpr std::size_t k_piece = std::size_t{16} << 10;

// Waits while the terminal here takes nothing: what it is not shown must not pile up here.
bool show(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written > 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd room{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
      ::poll(&room, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::string Terminal::modes() {
  termios modes{};
  if (::tcgetattr(STDIN_FILENO, &modes) != 0) return {};
  return {reinterpret_cast<const char*>(&modes), sizeof modes};
}

winsize Terminal::size() {
  winsize size{};
  ::ioctl(STDIN_FILENO, TIOCGWINSZ, &size);
  return size;
}

Result<void> Terminal::join(Fd other) {
  other_ = std::move(other);
  if (::fcntl(other_.get(), F_SETFL, O_NONBLOCK) != 0) return Error::system("terminal");
  termios modes{};
  if (::tcgetattr(STDIN_FILENO, &modes) != 0) return Error::system("terminal");
  own_modes_ = modes;
  ::cfmakeraw(&modes);
  if (::tcsetattr(STDIN_FILENO, TCSANOW, &modes) != 0) return Error::system("terminal");
  resize();  // it may have changed meanwhile
  TRY(loop_.watch(other_.get(), EPOLLIN, [this](std::uint32_t events) {
    if ((events & EPOLLOUT) != 0) on_room();
    if (other_ && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) on_output();
  }));
  TRY(loop_.watch(STDIN_FILENO, EPOLLIN, [this](std::uint32_t) { on_keys(); }));
  keys_watched_ = true;
  return {};
}

void Terminal::resize() const {
  const winsize now = size();
  if (other_ && now.ws_row != 0) ::ioctl(other_.get(), TIOCSWINSZ, &now);
}

void Terminal::stop_keys() {
  if (keys_watched_) loop_.forget(STDIN_FILENO);
  keys_watched_ = false;
}

void Terminal::on_keys() {
  std::array<char, k_piece> piece;
  const ssize_t got = ::read(STDIN_FILENO, piece.data(), piece.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  // Whoever sat here is gone; the signal that tells so ends this program.
  if (got <= 0) return stop_keys();
  keys_.append(piece.data(), static_cast<std::size_t>(got));
  on_room();
}

void Terminal::on_room() {
  while (!keys_.empty()) {
    const ssize_t written = ::write(other_.get(), keys_.data(), keys_.size());
    if (written <= 0) break;
    keys_.erase(0, static_cast<std::size_t>(written));
  }
  // What the program there does not read yet stays with whoever types it.
  const bool full = !keys_.empty();
  constexpr std::uint32_t both = std::uint32_t{EPOLLIN} | std::uint32_t{EPOLLOUT};
  (void)loop_.change(other_.get(), full ? both : EPOLLIN);
  if (keys_watched_) (void)loop_.change(STDIN_FILENO, full ? 0U : EPOLLIN);
}

void Terminal::on_output() {
  bool more = false;
  if (show_some(&more)) return;
  stop_keys();
  loop_.forget(other_.get());
  other_.reset();
}

// more is true after output, and stays false where there is none at present.
Result<void> Terminal::show_some(bool* more) {
  std::array<char, k_piece> piece;
  const ssize_t got = ::read(other_.get(), piece.data(), piece.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  // EIO: nobody has it open there any more.
  if (got <= 0) return Error::system("terminal");
  *more = show({piece.data(), static_cast<std::size_t>(got)});
  return *more ? Result<void>() : error("terminal");
}

void Terminal::leave() {
  while (other_) {
    bool more = false;
    if (!show_some(&more) || !more) break;
  }
  stop_keys();
  if (other_) loop_.forget(other_.get());
  other_.reset();
  if (own_modes_) ::tcsetattr(STDIN_FILENO, TCSANOW, &*own_modes_);
  own_modes_.reset();
}

}  // namespace glidepod::apptainer
