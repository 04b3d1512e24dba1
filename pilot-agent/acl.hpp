#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/fd.hpp"
#include "lib/base/result.hpp"

namespace glidepod::agent {

// An access control list of a file (acl(5)). Written by xattr(7), as linux/posix_acl_xattr.h has it: libacl
// opens files, and those here may be a pipe, or a hostile user's.
class Acl {
 public:
  enum class Tag : std::uint16_t {
    owner = 0x01,
    user = 0x02,
    group_owner = 0x04,
    group = 0x08,
    mask = 0x10,
    other = 0x20
  };
  enum class Kind : std::uint8_t {
    access,
    of_new,  // of a folder: what is made in it begins with these
  };
  static constexpr unsigned k_read = 4, k_write = 2, k_pass = 1;

  static Acl from_mode(mode_t mode);
  // Of an object held by O_PATH, so that its being opened has no effect.
  static Result<Acl> of(const Fd& held, mode_t mode);

  void grant(Tag tag, std::uint32_t id, unsigned rights);
  // Of the owner, the group or others.
  unsigned rights(Tag tag) const;
  // Takes all from the group and from whoever is not named.
  void close_to_others();
  // With a mask that takes nothing from those who are named.
  Result<void> write(const Fd& held, Kind kind) const;

 private:
  static constexpr std::uint32_t k_no_id = 0xffffffff;
  struct Entry {
    Tag tag = Tag::other;
    std::uint16_t rights = 0;
    std::uint32_t id = k_no_id;
  };
  std::vector<Entry> entries_;
};

// Only root and these users may read and write it.
Result<void> open_to(const std::string& path, const std::vector<uid_t>& users);

}  // namespace glidepod::agent
