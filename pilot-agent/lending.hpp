#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "lib/base/result.hpp"

namespace glidepod::agent {

// A folder that the user of a pilot job leaves to the user of one of its own jobs: both may read and write
// what is in it, whichever of them made it. By access control lists (acl(5)), as neither is root and both are
// hostile.
struct Lent {
  std::string scratch;  // absolute; nothing on the way to it is hostile
  std::string sandbox;  // of the pilot job, inside scratch
  std::string folder;   // inside that sandbox, and not the sandbox itself
  uid_t owner = 0;      // the pilot job's user and group
  gid_t group = 0;
  uid_t borrower = 0;
  gid_t family = 0;  // a group of all jobs of this pilot job, which may pass through the folders above
  std::vector<uid_t> above;  // who may own these: the pilot job's user, and the pilots whose job it is
};

// No link is followed, and nothing is touched that is not the owner's own, so a tree that changes meanwhile
// leads nowhere else. Others than the two lose what rights they had in the folder itself. Blocks; needs
// CAP_FOWNER and CAP_DAC_OVERRIDE.
Result<void> lend(const Lent& lent);

// When no process of the borrower is left: what is the borrower's becomes the owner's. Needs CAP_CHOWN too.
// Whoever moves a folder away keeps what is in it, the owner's only.
Result<void> take_back(const Lent& lent);

}  // namespace glidepod::agent
