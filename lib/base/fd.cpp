#include "lib/base/fd.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace glidepod {

void Fd::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

Result<Fd> Fd::duplicate() const {
  const int copy = ::fcntl(fd_, F_DUPFD_CLOEXEC, 3);
  if (copy < 0) return Error::system("duplicate descriptor {}", fd_);
  return Fd(copy);
}

}  // namespace glidepod
