#pragma once

#include <linux/filter.h>

#include <vector>

#include "lib/base/result.hpp"

namespace glidepod::glue {

// The system calls a job may not make. Everything that needs a capability would fail anyway; the filter takes
// away what a job of a user without any could still use against the kernel, and what the container runtime's
// own filter may be missing. Compiled once, loaded in each job's process.
class Filter {
 public:
  static Result<Filter> build();

  // In the process that will be the job, which must have no_new_privs. 0, or the errno.
  int load() const;
  std::size_t instructions() const { return program_.size(); }

 private:
  std::vector<sock_filter> program_;
};

}  // namespace glidepod::glue
