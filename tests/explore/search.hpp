#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/explore/arena.hpp"
#include "tests/explore/digest.hpp"
#include "tests/explore/model.hpp"
#include "tests/explore/table.hpp"

namespace glidepod::explore {

// By which choices of Model::choices() a state is reached.
using Path = std::vector<std::uint8_t>;
std::string text_of(const Path& path);

// What the processes of one search share.
struct Shared {
  std::atomic<bool> stop{false};  // something was found, or the time or the memory is over
  std::atomic<std::uint64_t> states{0}, steps{0}, rests{0}, compared{0}, deepest{0};
  std::atomic<int> idle{0};
  struct Slot {
    std::uint32_t length = 0;
    std::uint8_t path[4000] = {};
  };
  std::atomic_flag lock = ATOMIC_FLAG_INIT;
  bool has_work = false;  // a part of the tree that nobody explores yet
  Slot work;
  bool failed = false;
  Slot failure;
  char verdict[400] = {};
};

// Explores all that can follow, depth first. A state that any process has seen is not explored again.
class Search {
 public:
  using Clock = std::chrono::steady_clock;
  struct Limits {
    std::uint64_t states = 0;
    Clock::time_point end;
    int processes = 2;
    std::uint64_t compare_one_in = 512;
  };
  Search(const Variant& variant, int faults, const Limits& limits, Table& table, Shared& shared);

  // One process's share; ends when all have nothing left.
  void work();

 private:
  struct Node {
    arena::Saved saved;
    std::vector<Choice> choices;
    std::size_t next = 0, taken = 0;
    std::uint64_t digest = 0;
  };
  void explore(const Path& from);
  void enter();
  bool at_rest();
  void check_cycle(std::size_t first);
  void compare(std::uint64_t digest);
  bool alike(const arena::Saved& a, const arena::Saved& b, int steps);
  std::size_t replay(const Path& path);
  void step(std::size_t choice);
  Path path() const;
  void fail(const std::string& verdict);
  void share();
  bool take(Path& work);

  Limits limits_;
  Table& table_;
  Shared& shared_;
  Model* model_ = nullptr;  // in the arena
  arena::Saved root_;
  Path base_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::size_t depth_ = 0;
  std::unordered_map<std::uint64_t, std::size_t> on_path_;
  std::unordered_map<std::uint64_t, Path> samples_;
  std::uint64_t count_ = 0;
  std::string difference_;  // the choices after which two states are not alike
};

// Whether the schedule breaks a property; replays it, by index or by the choices themselves, of which those
// that cannot be are left out. The verdict is empty if it does not.
struct Replayed {
  std::string verdict;
  Path path;
  std::vector<Choice> choices;
};
Replayed replay(const Variant& variant, int faults, const Path& path, bool tell);
// The same failure by fewer choices.
Replayed shortened(const Variant& variant, int faults, const Path& path);

}  // namespace glidepod::explore
