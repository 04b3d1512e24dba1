#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "glue/privileges.hpp"
#include "lib/base/fd.hpp"

namespace glidepod::glue {

struct Cleaned {
  std::uint32_t removed = 0;  // files, folders and IPC objects
  bool complete = true;
};

// A short look, without a child, at what is the user's below the folders and in System V IPC.
enum class Found : std::uint8_t { nothing, something, too_much };
Found look_for(const User& user, const std::vector<std::string>& folders);

// A child that removes it: a Cleaned comes through the pipe, unless it is killed.
struct Cleaner {
  pid_t pid = -1;
  Fd report;
};
// With the user's own rights, since root has no CAP_DAC_OVERRIDE here, or with root's. Nothing where there
// can be no child.
std::optional<Cleaner> start_cleaner(const User& user, const std::vector<std::string>& folders, bool as_root);

}  // namespace glidepod::glue
