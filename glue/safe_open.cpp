#include "glue/safe_open.hpp"

#include <sys/syscall.h>
#include <unistd.h>

namespace glidepod::glue {

Fd open_without_links(int at, const char* path, int flags, std::uint64_t resolve, unsigned mode) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.mode = mode;
  how.resolve = resolve | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return Fd(static_cast<int>(::syscall(SYS_openat2, at, path, &how, sizeof how)));
}

}  // namespace glidepod::glue
