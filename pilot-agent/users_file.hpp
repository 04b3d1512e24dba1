#pragma once

#include <set>
#include <string>

#include "pilot-agent/core/types.hpp"

namespace glidepod::agent {

// Core::users() on the shared volume, for the next agent of this pod: a line `UID GID` each,
// with `clearing` behind it where a glue had been told to remove what they left.
class UsersFile {
 public:
  explicit UsersFile(std::string path) : path_(std::move(path)) {}
  // Those that an earlier agent has written; none if there was none, or its file does not read.
  std::set<User> read() const;
  // Writes them where they are others than the last ones. An error is logged.
  void keep(std::set<User> users);

 private:
  std::string path_;
  std::set<User> kept_;
};

}  // namespace glidepod::agent
