#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "lib/base/fd.hpp"
#include "lib/base/result.hpp"

namespace glidepod::wire {

// What may be handed to a job as its standard input, output and error.
//
// They are opened where somebody else opens them: HTCondor's starter opens in the pilot container whatever
// path the job's ad names (`In`, `Out`, `Err`), follows links that an earlier run of the job has left, and
// does not look what it has got. A folder would be a door: by /proc/self/fd/0/../.. the job would walk
// through the mounts of the container that it was opened in. A file of that container, a device, or a
// connection to one of its sockets would be the job's as well.
//
// So a stream must give the job nothing that it could not have by itself:
// - a regular file or a named pipe only if the very same one (device and number) is found by its name below
//   the job's sandbox, which is on the volume that all containers share. Its name is the kernel's
//   (/proc/self/fd), so links say nothing; the way from the volume's root is walked without following any.
//   Renaming and hard links are no way around it: what a job can bring below its sandbox it has reached
//   before, and a file has no "..". One without a name has none to be found by. It is the starter's user who
//   has opened it, which is the job's;
// - a pipe or a pair of sockets without names, which lead to whoever handed them over and nowhere else;
// - /dev/null, and a terminal.
// What was opened with O_PATH is nothing to read or write.
struct StreamRules {
  // The volume of the sandboxes as it is named here, and the job's own sandbox on it, below which files must
  // lie. A sandbox that is not below the volume has no files. The volume itself stands for every sandbox,
  // into which glue, without a right to other users' folders, cannot look: there a file's name and its device
  // have to do.
  std::string volume;
  std::string sandbox;
  // The caller's own terminal, by terminal_of(); 0: none. Nothing: any terminal.
  std::optional<dev_t> terminal = 0;
};

// The fact of an Error of judge_streams().
struct RefusedStream {
  int number = 0;  // 0 to 2
};

// The streams, in the order 0 to 2; more descriptors are not looked at. An Error says which one is refused
// and what it is, in words that name the line of a submit description.
Result<void> judge_streams(const std::vector<Fd>& streams, const StreamRules& rules);

// The controlling terminal of a process; 0 if it has none, or has ended.
dev_t terminal_of(pid_t process);

}  // namespace glidepod::wire
