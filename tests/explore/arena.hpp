#pragma once

#include <cstddef>
#include <vector>

namespace glidepod::explore::arena {

// The memory of one model: all that is allocated while a Scope lives. It lies in one piece at one address, so
// it can be saved and put back by copying bytes, whatever pointers are in it. What is allocated elsewhere
// must not be kept in it, nor the other way round. One a process.
void open(std::size_t size);

class Scope {
 public:
  Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope();
};

using Saved = std::vector<char>;  // allocated outside of a Scope
void save(Saved& to);
void restore(const Saved& from);

}  // namespace glidepod::explore::arena
