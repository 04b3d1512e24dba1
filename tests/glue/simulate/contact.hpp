#pragma once

#include <optional>

#include "lib/base/loop.hpp"

namespace glidepod::glue::simulate {

class World;

// How glue comes by an agent: that it looks, and does not look too often.
class Contact {
 public:
  explicit Contact(World& world) : world_(world) {}

  // What glue says and does
  void awaited();
  void connected();
  void looks();
  void lost();
  // It may look for the next one, now that the last is gone and so is its job.
  void free();
  // Until now it had something to remove first.
  void may_look();
  // An agent listens, which glue can see; it hangs up.
  void listens(bool does);
  void hangs_up();
  // After each of glue's turns; busy: it has more to do than to look for an agent.
  void check(bool busy) const;

 private:
  World& world_;
  bool awaited_ = false, connected_ = false;
  bool sure_ = true;  // of how long the connections were
  int brief_ = 0;     // connections, one after the other
  SteadyTime connected_at_{}, earliest_{};
  std::optional<SteadyTime> listens_since_, hung_up_at_;
};

}  // namespace glidepod::glue::simulate
