#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/child.hpp"
#include "lib/base/loop.hpp"
#include "tests/kube/fake_server.hpp"

namespace glidepod::agent {

// One pod without containers: the real agent and real glues as processes of this machine, and an API server
// with a kubelet that restarts a glue when its image is patched. Needs root.
class SmallCluster {
 public:
  explicit SmallCluster(int payloads, std::vector<std::string> settings = {});
  ~SmallCluster();
  SmallCluster(const SmallCluster&) = delete;
  SmallCluster& operator=(const SmallCluster&) = delete;

  struct Job {
    std::string image;
    std::vector<std::string> argv;
    std::string verb = "exec";
    std::string owner = "alice@pool";
    uid_t uid = 29001;
    std::string parent;     // runs below a process of this name, which tells of a SIGQUIT
    bool stubborn = false;  // and then does nothing
    bool probe = false;     // called as HTCondor's startd does, to see what its container runtime can do
    // As HTCondor 25 has it: the ad in the sandbox is its user's, here with another owner, and the parent
    // gives prepare-job the true one before.
    bool told = false;
    uid_t parent_uid = 0;
    // The parent gives the ad to check-job first, and runs the job so much later, as HTCondor does while the
    // input files come; 0: it does not.
    int files_ms = 0;
    std::string in = {};  // what its starter opens as standard input; empty: what this process has
  };
  struct Ran {
    ExitStatus status;
    std::string out;
    double ms = 0;
  };
  Ran run(const Job& job);
  // The same in two parts.
  int start(const Job& job);
  Ran wait(int job);
  const Child& child(int job) const { return jobs_.at(job)->child; }

  template <typename Condition>
  bool until(Condition condition, Milliseconds limit = Milliseconds(10'000)) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!condition() && std::chrono::steady_clock::now() < end)
      if (!loop.run_once(Milliseconds(50))) return false;
    if (condition()) return true;
    gave_up();
    return false;
  }
  // Lets the others do what they have to for a time.
  void idle(Milliseconds time);
  std::string log() const;
  bool logged(const std::string& text) const { return log().find(text) != std::string::npos; }
  // Shows the agent's log.
  void gave_up() const;
  // The references patched so far.
  std::vector<std::string> patches;
  int api_requests = 0;
  int deadline = 0;  // of the pod, in seconds, once it has been patched
  // Kills the glue of a container; the kubelet then says why it ended, and starts it again.
  void kill_glue(int payload, const std::string& reason);
  // Kills the agent and starts another, as the kubelet would.
  void restart_agent();
  // Starts another beside it, until that one has ended; its log is the output.
  Ran second_agent();
  // Ends the agent by SIGTERM; how it ended.
  ExitStatus stop();
  std::optional<ExitStatus> agent_ended;
  std::map<std::string, std::optional<ExitStatus>> glue_ended;
  pid_t agent_pid() const { return agent_->pid(); }
  std::string folder() const { return api_.folder(); }
  // Where the isolated tests find the program, wherever it was built.
  static std::string apptainer();

  Loop loop = Loop::create().value();
  // What the registry has: repository to digest.
  std::map<std::string, std::string> registry;
  int patch_status = 200;  // what the API answers to a patch
  std::string restart_policy = "OnFailure";
  bool silent = false;  // watches tell nothing, and are not cut

 private:
  static bool isolate();
  struct Container {
    std::string name, image, image_id, waiting, message;
    nlohmann::json last_state = nlohmann::json::object();
    int restarts = 0;
    std::string end_reason;  // of the end that is under way
    std::optional<Child> glue;
  };
  struct Started {
    Child child;
    std::string out;  // file
    Fd pipe;          // or this
    std::chrono::steady_clock::time_point begin;
  };
  nlohmann::json pod() const;
  kube::FakeServer::Reply answer(const kube::FakeServer::Request& request);
  bool patch(const nlohmann::json& change);
  void start_glue(Container& container);
  void glue_gone(Container& container);
  void tell();
  Child spawn_agent(const std::string& log_file);
  void start_agent();

  bool isolated_ = isolate();
  kube::FakeServer api_{loop};
  std::vector<Container> containers_;
  std::vector<int> watchers_;
  std::vector<std::string> settings_;
  std::optional<Child> agent_;
  std::map<int, std::unique_ptr<Started>> jobs_;
  int last_job_ = 0;
  int version_ = 1;
  bool ending_ = false;
};

}  // namespace glidepod::agent
