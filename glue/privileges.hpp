#pragma once

#include <sys/types.h>

#include <vector>

namespace glidepod::glue {

// A user as whom a job runs, by numbers: a static program has no name service.
struct User {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  // all its supplementary groups
};

// The next functions are for a forked child on its way to the job's program or to the job's files. Each
// returns 0, or the errno of its failure. None of them can be undone.

// Takes away the capabilities that a program could still gain. If the right to do so is missing, no_new_privs
// keeps a program from gaining any.
int drop_bounding_set();
// Becomes the user: sets the supplementary groups, then the real, effective, saved and file system ids of
// group and user.
int become(const User& user);
// For looking at the user's files: takes the user's rights to files, and gives up all capabilities. All other
// ids stay, so that a process of the user can neither signal this one nor change its priority.
int see_as(const User& user);
// Drops the permitted, effective, inheritable and ambient capabilities. Fails if any is left.
int drop_capabilities();

}  // namespace glidepod::glue
