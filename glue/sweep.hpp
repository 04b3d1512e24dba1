#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "glue/privileges.hpp"
#include "lib/base/fd.hpp"
#include "lib/base/loop.hpp"

namespace glidepod::glue {

// Finds, counts and removes what a user owns below shared folders such as /tmp. It follows no symbolic link
// and enters no other mount.
class Sweep {
 public:
  enum class Mode : std::uint8_t {
    look,     // only tells whether there is something
    remove,   // as the user: removes trees, however deep, whatever their modes
    entries,  // as root: removes what the user could not unlink, single entries only
    count,    // adds up the disk space, and changes nothing
  };
  // most: the largest number of entries that it looks at.
  Sweep(const User& user, Mode mode, std::size_t most = SIZE_MAX) : user_(user), mode_(mode), left_(most) {}

  // Works on one folder. A folder that is missing, or is a symbolic link, counts as empty.
  void folder(const std::string& path);

  // Counting ends at this time.
  void end_at(SteadyTime until) { until_ = until; }

  // Looking into other users' folders ends at this time.
  void end_foreign_at(SteadyTime until) { foreign_until_ = until; }

  std::uint32_t removed() const { return removed_; }
  // Whether entries of the user are still there.
  bool found() const { return found_; }
  // Whether there were too many entries to look at all.
  bool cut_short() const { return left_ == 0; }
  // The result of count, and whether it is complete.
  std::int64_t bytes() const { return bytes_; }
  bool complete() const { return !missed_ && !cut_short(); }

 private:
  void walk(Fd folder, int depth);
  void entry(int parent, const char* name, int depth);
  bool remove(int parent, const char* name, bool is_folder);
  enum class Emptied : std::uint8_t { all, enter, failed };
  Emptied empty(int folder, Fd* below);
  bool remove_tree(int parent, const char* name);
  bool unlink(int parent, const char* name, int flags);
  void count(int parent, const char* name, const struct stat& info, int depth);

  const User& user_;
  Mode mode_;
  std::size_t left_;
  std::uint32_t removed_ = 0;
  bool found_ = false;
  SteadyTime until_ = SteadyTime::max();
  SteadyTime foreign_until_ = SteadyTime::max();
  int foreign_depth_ = 0;
  std::int64_t bytes_ = 0;
  bool missed_ = false;
};

}  // namespace glidepod::glue
