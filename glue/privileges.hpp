#pragma once

#include <sys/types.h>

#include <vector>

namespace glidepod::glue {

// A user by number, as the job runs. There is no name service in a static program.
struct User {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  // supplementary, exactly these
};

// These are for a forked child on its way to the job's program or to the job's files. Each returns 0 or the
// errno that stopped it; none can be undone.

// Takes away the capabilities that a program could still gain; where the right to do so is missing there is
// nothing to gain either, thanks to no_new_privs.
int drop_bounding_set();
// Groups, group, user: real, effective, saved and file system ids.
int become(const User& user);
// For looking at the user's files: their rights and no capability, while all other ids stay, so that a
// process of the user's can neither signal this one nor change its priority.
int see_as(const User& user);
// Permitted, effective, inheritable and ambient; fails if any is left.
int drop_capabilities();

}  // namespace glidepod::glue
