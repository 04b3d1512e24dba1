// What hold-job reads: a starter's address file, which lies where the job's user may write, and the answers
// of whoever listens there.
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "pilot-agent/hold_job/cedar.hpp"

using namespace glidepod;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void read_all_kinds(cedar::Reader reader, std::string_view order) {
  for (const char kind : order) {
    const bool fine = kind % 3 == 0   ? reader.number().ok()
                      : kind % 3 == 1 ? reader.text().ok()
                                      : reader.ad().ok();
    if (!fine) return;
  }
}

}  // namespace

// The first byte says what comes: an address, a message, or bytes of a connection.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] % 3 == 0) {
    const auto address = cedar::parse_address(bytes);
    if (address) require(address->port != 0 && !address->host.empty());
    const auto folder = cedar::proof_folder(bytes, {"10.1.2.3", 4567});
    if (folder)
      require(folder->path.starts_with("/tmp/FS_") && folder->path.find('/', 5) == std::string::npos);
  } else if (data[0] % 3 == 1) {
    read_all_kinds(cedar::Reader(bytes.substr(1)), std::string(16, bytes[0]));
    read_all_kinds(cedar::Reader(bytes), bytes);
  } else {
    int ends[2];
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    const Fd ours(ends[0]);
    cedar::Connection connection{Fd(ends[1])};
    require(::send(ours.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(bytes.size()));
    ::shutdown(ours.get(), SHUT_WR);
    while (auto received = connection.receive())
      read_all_kinds(*std::move(received), std::string_view("\0\1\2\2", 4));
  }
  return 0;
}
