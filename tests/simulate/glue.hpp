#pragma once

#include <functional>
#include <optional>

#include "lib/kube/pod.hpp"
#include "pilot-agent/core/core.hpp"

namespace glidepod::simulate {

class World;

// The process in a payload container: its side of the protocol, and the job below it.
class Glue {
 public:
  Glue(World& world, int box, std::uint64_t instance) : world_(world), box_(box), instance_(instance) {}

  void begin();
  void agent_up();  // its socket has appeared
  void agent_gone(agent::GlueId link);
  void terminate();                    // SIGTERM from outside
  void killed(kube::Termination how);  // with everything in the container, at once
  void wedge();                        // stopped: it takes nothing, says nothing
  void out_of_memory();                // the kernel kills the job's main process
  void struck();                       // somebody signals all processes, glue last

  void take_launch(agent::JobId job, agent::ClientId client);
  void take_clear(agent::JobId job, uid_t uid);
  void take_signal(agent::JobId job, int number);
  void take_beat(std::uint64_t number);
  void take_finish();

  agent::GlueId link() const { return link_; }
  std::uint64_t instance() const { return instance_; }
  bool alive() const { return alive_; }
  bool said_goodbye() const { return said_goodbye_; }
  bool wedged() const { return wedged_; }
  bool busy() const { return job_.has_value(); }
  std::int64_t used_kib() const;  // that cannot be freed
  bool told_used() const { return told_used_; }
  agent::ClientId client() const { return job_ ? job_->client : 0; }
  uid_t uid() const { return job_ ? job_->uid : 0; }
  bool clears(uid_t uid) const { return alive_ && job_ && job_->client == 0 && job_->uid == uid; }

 private:
  struct Job {
    agent::JobId id = 0;
    agent::ClientId client = 0;
    std::optional<ExitStatus> status;  // of its main process, once it has ended
    uid_t uid = 0;
  };
  void later(Milliseconds wait, std::function<void(Glue&)> what);
  void connect();
  void refuse(agent::JobId job, wire::Fault fault, std::string why);
  void job_ends(ExitStatus status, std::string_view cause);
  void clean();
  void leave(int code);
  World& world_;
  int box_;
  std::uint64_t instance_;
  agent::GlueId link_ = 0;
  bool alive_ = true, wedged_ = false, said_goodbye_ = false, unclean_ = false;
  bool stuck_ = false;  // its job's main process hangs in the kernel: that it has exited is never told
  std::int64_t used_kib_ = 1000;
  bool told_used_ = false;
  std::optional<int> leaving_;
  std::optional<Job> job_;
};

}  // namespace glidepod::simulate
