#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "lib/base/fd.hpp"
#include "lib/base/result.hpp"

namespace glidepod::wire {

// What a job may get as its standard input, output and error.
//
// HTCondor's starter opens these streams in the pilot container. It opens whatever path the job's ad names
// (`In`, `Out`, `Err`), follows links that an earlier run of the job has left, and does not check what it
// got. A folder would be a door: by /proc/self/fd/0/../.. the job could walk through the mounts of the pilot
// container. Through a file of that container, a device, or a connection to one of its sockets the job would
// also get what is not its own.
//
// So a stream must give the job nothing that it could not have by itself. Allowed are:
// - a regular file or a named pipe, if the same one (by device and number) is found by its name below the
// job's sandbox,
//   which is on the volume that all containers share. The name is the kernel's (/proc/self/fd), so links in
//   the path do not matter, and the way from the volume's root is walked without following links. Renaming
//   and hard links do not get around this: a job can only bring below its sandbox what it could reach before,
//   and a file has no "..". A file without a name cannot be found and is refused. The starter opened the
//   stream as the job's own user;
// - a pipe or a pair of sockets without names, which lead only to whoever handed them over;
// - /dev/null, and a terminal.
// What was opened with O_PATH is refused: it cannot be read or written.
struct StreamRules {
  // volume: the path of the sandboxes' volume in this container. sandbox: the job's own sandbox on it, below
  // which files must lie. If the sandbox is not below the volume, no file is allowed. If it is the volume
  // itself, it stands for every sandbox; glue uses that, since it has no right to look into other users'
  // folders. Then only a file's name and device are checked.
  std::string volume;
  std::string sandbox;
  // The only terminal that is allowed: the caller's own, by terminal_of(); 0: none. Without a value any is
  // allowed.
  std::optional<dev_t> terminal = 0;
};

// The fact of an Error of judge_streams().
struct RefusedStream {
  int number = 0;  // 0 to 2
};

// Checks the streams, in the order 0 to 2; more descriptors are not checked. An Error says which stream is
// refused and what it is, and names the line of a submit description.
Result<void> judge_streams(const std::vector<Fd>& streams, const StreamRules& rules);

// The controlling terminal of a process; 0 if it has none, or has ended.
dev_t terminal_of(pid_t process);

}  // namespace glidepod::wire
