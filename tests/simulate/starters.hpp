#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pilot-agent/core/core.hpp"

namespace glidepod::simulate {

class World;

// One apptainer: what it asked, what its job would do, and what became of both.
struct Client {
  agent::Request request;
  int slot = 0;
  SteadyTime asked{};
  std::optional<wire::Fault> cannot_start;  // glue's word for why
  Milliseconds takes{0};
  ExitStatus ends;

  bool answered = false, gone = false;
  std::optional<int> signalled;  // by this client
  int launches = 0;              // that the core asked for
  bool ran = false;
  std::optional<ExitStatus> end;  // how the job really ended
  SteadyTime ended_at{};
  std::string_view cause;      // itself, signal, memory, stop, lost, killed, finish
  bool after_goodbye = false;  // it ended after glue had said that it goes
  bool told = false;           // the agent was told of the end
  bool held = false;           // HTCondor was asked to hold it
  bool astray = false;         // it ran in what its image does not name
  bool blamed = false;         // glue or the registry said that it cannot be

  agent::ClientId outer = 0;           // the pilot job that asks
  std::vector<agent::ClientId> inner;  // of a pilot job: who asked for it

  // The name of the image that it asks for; empty: any image will do.
  std::string image() const { return std::string(request.asked.name_or("")); }
};

// HTCondor's side: slots that run one job after another, each announced (in some schedules), tested (mostly)
// and then run.
class Starters {
 public:
  explicit Starters(World& world) : world_(world) {}

  void begin();
  // Nobody starts anything any more; who waits still waits.
  Client& client(agent::ClientId id) { return clients_.at(id); }
  agent::ClientId ask(int slot, wire::Verb verb, const std::string& image, const std::string& owner,
                      bool probe);
  // A pilot job runs, and has jobs of its own; it has ended, and its processes with it.
  void runs(agent::ClientId id, agent::JobId job);
  void ended(agent::ClientId id);
  void answered(agent::ClientId id, ExitStatus status);
  void failed(agent::ClientId id);
  void agent_gone(agent::ClientId id);
  void all_leave();
  // The clients that have no answer.
  std::vector<agent::ClientId> waiting() const;

 private:
  struct Slot {
    std::string image, owner;
    agent::ClientId testing = 0;
  };
  void ask_inner(agent::ClientId outer, agent::JobId job, const std::string& image, wire::Verb verb);
  void next_job(int slot);
  void start_job(int slot);
  void bind_job(int slot);
  void leaves(agent::ClientId id);
  World& world_;
  std::vector<Slot> slots_;
  std::map<agent::ClientId, Client> clients_;
};

}  // namespace glidepod::simulate
