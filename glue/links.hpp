#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/wire/messages.hpp"

namespace glidepod::glue {

// Who has to act on an Error of this folder: the fact in it, or the infrastructure.
wire::Fault fault_of(const Error& error);

// An absolute path without ".", "..", empty parts or a slash at its end; never "/".
bool is_plain_path(const std::string& path);
// path is folder or lies below it; both plain.
bool is_inside(const std::string& path, const std::string& folder);

// Whether the link may be made at all: from a plain path outside of what the system, Kubernetes and Glidepod
// use, to something inside the scratch folder.
Result<void> check_link(const wire::Link& link, const std::string& scratch);

// The symbolic links of one job. Making one replaces nothing but an empty folder; undoing them puts that
// back.
class Links {
 public:
  // On failure nothing remains. A link nobody should ask for is the infrastructure's fault; a path that the
  // image has filled is the user's: the same image fails the same way on every node.
  Result<void> make(const std::vector<wire::Link>& links, const std::string& scratch);
  void undo();
  ~Links() { undo(); }
  Links() = default;
  Links(Links&&) = default;
  Links& operator=(Links&&) = delete;

 private:
  struct Made {
    std::string path;    // of a link, or of a folder on the way to one
    std::string target;  // empty: a folder
    bool replaced = false;
    mode_t mode = 0;  // of the empty folder that was there
  };
  Result<void> make_one(const wire::Link& link);
  std::vector<Made> made_;
};

}  // namespace glidepod::glue
