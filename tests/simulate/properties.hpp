#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "lib/wire/messages.hpp"
#include "pilot-agent/core/core.hpp"

namespace glidepod::simulate {

class World;
struct Box;

// What must hold after every step. It knows what each container really runs and how each job really ended.
class Properties {
 public:
  explicit Properties(World& world) : world_(world) {}

  // The first one that did not hold; empty: all did.
  const std::string& verdict() const { return verdict_; }
  const std::string& about() const { return about_; }
  void broken(std::string_view property, std::string_view about);
  // What a job has left whose glue is killed, and who removes it.
  void left_behind(uid_t uid) { left_.insert(uid); }
  void runs_as(uid_t uid);
  void clears(uid_t uid);
  void cleared(uid_t uid) { left_.erase(uid); }
  const std::set<uid_t>& left() const { return left_; }

  // From the core.
  void patched(const Box& box, const std::string& image);
  void launch(agent::ClientId client);
  void answered(agent::ClientId client, ExitStatus status);
  void failed(agent::ClientId client, wire::Fault fault, std::string_view message);
  // From the node.
  void launched(const Box& box, agent::ClientId client);
  void launch_failed(agent::ClientId client);
  // A registry says nothing for as long as a job may wait, and that job keeps its container meanwhile.
  void registry_silent() { registry_silent_ = true; }
  void noted(std::string_view line);  // a line of the agent's log
  void given_up();
  void ended(agent::ClientId client, ExitStatus status, std::string_view cause, bool after_goodbye);
  void told_end(agent::ClientId client);
  void resized(const Box& box);  // its size is in force
  void asked(const Box& box, const kube::Size& size);
  void sized(const kube::Pod& pod);  // the API has taken sizes
  void paused(const Box& box, const std::string& image);
  // From the node and the agent: somebody stops a container while its image is being changed, and the kubelet
  // starts the same again, since it has not heard of the change; then it may be behind by one change until it
  // starts what the pod says. Nobody can know before the status tells. same is the instance before, if that
  // was of the same image.
  void behind(const Box& box, std::uint64_t same);
  // The core has been told of this pod.
  void told(const kube::Pod& pod);
  void agent_died();
  // This bind was failed for a pause of the kubelet's, where no digest could be learnt that avoids it.
  bool had_to_wait(agent::ClientId client) const;

  bool refused = false;        // the API has refused an image by its rules
  bool sizes_refused = false;  // likewise a size
  bool no_pauses = false;      // from here on, no start may have to wait

 private:
  std::set<uid_t> left_;
  bool can_learn() const;
  bool nothing_else_wrong() const;

  struct Last {
    std::uint64_t instance = 0;
    std::string owner;
  };
  World& world_;
  std::string verdict_, about_;
  std::map<std::string, Last> owners_;  // by container: who had it since it started
  std::set<std::string> learnt_;        // image strings of which the agent has been shown a running container
  std::set<std::uint64_t> shown_;       // instances of which it has
  struct Alike {
    bool known = false;  // the agent knew what ran before
    std::map<agent::ClientId, SteadyTime> clients;
  };
  std::map<std::uint64_t, Alike> alike_;  // by instance
  std::uint64_t version_ = 0;             // of the newest pod told
  int failures_ = 0;                      // that the log tells of since a job started
  bool registry_silent_ = false;
  bool home_told_ = false;                // the agent knows the pilot's imageID
  std::set<std::uint64_t> leaving_;       // instances that were there when a patch was sent
  std::set<std::string> young_;           // containers patched before it did
  std::set<std::uint64_t> known_;         // instances that it had been shown when it had them patched
  std::set<std::string> late_;            // images that a bind had given up before they started
  std::set<agent::ClientId> backed_off_;  // binds that failed for the kubelet's pause
};

}  // namespace glidepod::simulate
