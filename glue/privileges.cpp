#include "glue/privileges.hpp"

#include <grp.h>
#include <sys/capability.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>

namespace glidepod::glue {

int drop_bounding_set() {
  for (cap_value_t capability = 0; capability < cap_max_bits(); ++capability) {
    if (cap_drop_bound(capability) == 0) continue;
    // EPERM: no CAP_SETPCAP, as in a real pod; the same for every other.
    return errno == EPERM ? 0 : errno;
  }
  return 0;
}

namespace {
// uid -1 means "leave as it is" to the calls below.
bool is_plain(const User& user) {
  return user.uid != 0 && user.gid != 0 && user.uid != static_cast<uid_t>(-1) &&
         user.gid != static_cast<gid_t>(-1);
}
}  // namespace

int become(const User& user) {
  if (!is_plain(user)) return EINVAL;
  // --unprivileged: there is one user, and the container has given it its groups.
  if (::geteuid() != 0) return user.uid == ::geteuid() && user.gid == ::getegid() ? 0 : EPERM;
  if (::setgroups(user.groups.size(), user.groups.data()) != 0) return errno;
  if (::setresgid(user.gid, user.gid, user.gid) != 0) return errno;
  if (::setresuid(user.uid, user.uid, user.uid) != 0) return errno;
  return 0;
}

int see_as(const User& user) {
  if (!is_plain(user)) return EINVAL;
  if (::geteuid() != 0) return become(user);
  if (::setgroups(user.groups.size(), user.groups.data()) != 0) return errno;
  ::setfsgid(user.gid);
  ::setfsuid(user.uid);
  // Both calls return the id of before, not whether they succeeded; with -1 they change nothing.
  const bool changed = ::setfsgid(static_cast<gid_t>(-1)) == static_cast<int>(user.gid) &&
                       ::setfsuid(static_cast<uid_t>(-1)) == static_cast<int>(user.uid);
  return changed ? drop_capabilities() : EPERM;
}

int drop_capabilities() {
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) return errno;
  cap_t none = cap_init();
  if (none == nullptr) return errno;
  if (cap_set_proc(none) != 0) return errno;
  cap_t now = cap_get_proc();
  if (now == nullptr) return errno;
  return cap_compare(none, now) == 0 ? 0 : EPERM;
}

}  // namespace glidepod::glue
