#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "lib/base/fd.hpp"
#include "lib/base/result.hpp"

namespace glidepod::glue {

// The line to append to a passwd file so that it knows the uid; none if it knows the uid already. A name that
// another user has gets the uid at its end. Characters that would break the line (':', control characters)
// are replaced.
std::optional<std::string> passwd_line(std::string_view passwd, std::string_view name, uid_t uid, gid_t gid,
                                       std::string_view home);
// The same for a group file and the gid.
std::optional<std::string> group_line(std::string_view group, std::string_view name, gid_t gid);

// An image's /etc/passwd and /etc/group, held open. They must be regular files of root in the image's own
// file system; the image's links are followed. A missing file is created.
class Accounts {
 public:
  Accounts() = default;
  explicit Accounts(const Fd& root);
  // Makes both files know the user.
  Result<void> add(std::string_view name, uid_t uid, gid_t gid, std::string_view home) const;

 private:
  Result<Fd> passwd_ = Fd(), group_ = Fd();
};

}  // namespace glidepod::glue
