#pragma once

#include <cstdint>
#include <string>

#include "glue/privileges.hpp"
#include "lib/base/fd.hpp"

namespace glidepod::glue {

// Finds and removes what a user owns below shared folders such as /tmp. Follows no symbolic link and enters
// no other mount.
class Sweep {
 public:
  enum class Mode : std::uint8_t {
    look,     // only tell whether there is something
    remove,   // as the user: trees, however deep, whatever their modes
    entries,  // as root: what the user could not unlink itself; single entries only
  };
  // Looks at no more entries than so many.
  Sweep(const User& user, Mode mode, std::size_t most = SIZE_MAX) : user_(user), mode_(mode), left_(most) {}

  // A folder that is missing, or is a symbolic link, holds nothing.
  void folder(const std::string& path);

  std::uint32_t removed() const { return removed_; }
  // Entries of the user that are still there.
  bool found() const { return found_; }
  // There were too many entries to tell.
  bool cut_short() const { return left_ == 0; }

 private:
  void walk(Fd folder, int depth);
  void entry(int parent, const char* name, int depth);
  bool remove(int parent, const char* name, bool is_folder);
  enum class Emptied : std::uint8_t { all, enter, failed };
  Emptied empty(int folder, Fd* below);
  bool remove_tree(int parent, const char* name);
  bool unlink(int parent, const char* name, int flags);

  const User& user_;
  Mode mode_;
  std::size_t left_;
  std::uint32_t removed_ = 0;
  bool found_ = false;
};

}  // namespace glidepod::glue
