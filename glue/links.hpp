#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/wire/messages.hpp"

namespace glidepod::glue {

// Who has to act on an Error of glue: the fault that is its fact, else the infrastructure.
wire::Fault fault_of(const Error& error);

// Whether this is an absolute path without ".", "..", empty parts or a slash at its end. "/" is none.
bool is_plain_path(const std::string& path);
// Whether path is the folder or lies below it. Both must be plain paths.
bool is_inside(const std::string& path, const std::string& folder);

// Checks whether the link may be made at all. Its path must be plain and outside of what the system,
// Kubernetes and Glidepod use: a job may choose it, so that is the user's fault. Its target must be inside
// the scratch folder.
Result<void> check_link(const wire::Link& link, const std::string& scratch);

// The symbolic links of one job. A link replaces nothing but an empty folder, which is put back when the
// links are undone.
class Links {
 public:
  // Makes the links; on failure none remains. A path that the image has closed, or where it has something, is
  // the user's fault, since the same image fails in the same way on every node.
  Result<void> make(const std::vector<wire::Link>& links, const std::string& scratch);
  void undo();
  ~Links() { undo(); }
  Links() = default;
  Links(Links&&) = default;
  Links& operator=(Links&&) = delete;

 private:
  struct Made {
    std::string path;    // of a link, or of a folder that was made on the way to one
    std::string target;  // empty: it is a folder
    bool replaced = false;
    mode_t mode = 0;  // of the empty folder that was there
  };
  Result<void> make_one(const wire::Link& link);
  std::vector<Made> made_;
};

}  // namespace glidepod::glue
