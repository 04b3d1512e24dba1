#pragma once

#include <linux/filter.h>

#include <vector>

#include "lib/base/result.hpp"

namespace glidepod::glue {

// The system calls that a job may not make. A call that needs a capability would fail anyway. The filter
// takes away the calls that an unprivileged user could still use against the kernel, and those that the
// container runtime's own filter may lack. It is compiled once and loaded in each job's process.
class Filter {
 public:
  static Result<Filter> build();

  // To be called in the process that will be the job, which must have no_new_privs. Returns 0 or the errno.
  int load() const;
  std::size_t instructions() const { return program_.size(); }

 private:
  std::vector<sock_filter> program_;
};

}  // namespace glidepod::glue
