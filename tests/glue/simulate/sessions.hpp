#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "lib/base/loop.hpp"
#include "lib/wire/messages.hpp"

namespace glidepod::glue::simulate {

class World;
struct Process;

// Processes beside the job's main one, for its owner: what the agent hears of them, and what they are told.
class Sessions {
 public:
  explicit Sessions(World& world) : world_(world) {}

  // The agent asks; refused: no such job runs.
  void asked(const wire::OpenSession& open, bool refused);
  void closing(std::uint64_t id, bool of_this_job);
  // What becomes of one: its supervisor, what that tells, which the end is without if it is killed.
  void opens(std::uint64_t id, const Process& supervisor);
  void fails(std::uint64_t id);
  void ends(std::uint64_t id, ExitStatus status);
  // A supervisor gets SIGTERM.
  void struck(const Process& supervisor);

  void told(const wire::SessionStarted& started);
  void told(const wire::SessionEnded& ended);
  void told(const wire::SessionFailed& failed);
  void forget() { all_.clear(); }
  // Whether all is said that was asked: it runs, is over, or never was.
  bool answered(std::uint64_t id) const;
  bool empty() const { return all_.empty(); }
  // After each of glue's turns; due: they are not forgotten since.
  void check(bool due) const;

 private:
  struct Session {
    int asks = 0, answers = 0;
    bool refused = false, opened = false, failed = false, started_told = false, over = false;
    bool may_close = false, closing = false;  // it was asked for, and what lives is not told
    pid_t pid = 0;
    std::uint64_t start = 0;
    std::optional<ExitStatus> status;
    SteadyTime asked_at{};
  };
  Session& of(std::uint64_t id);

  World& world_;
  std::map<std::uint64_t, Session> all_;
};

}  // namespace glidepod::glue::simulate
