#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "lib/kube/client.hpp"

namespace glidepod::provisioner {

using Json = nlohmann::json;

struct LeaseOptions {
  std::string name_space, name;
  std::string identity;  // no two processes have the same
  // As in every lease of Kubernetes: whoever did not renew for this long has lost it to whoever wants it.
  std::chrono::seconds duration{30};
  Milliseconds period{5'000};  // between two renewals or looks
  // A leader that could not renew for this long stops by itself. So long before the end that what it has
  // under way, at most one attempt of 15 s, is over when another takes the lease.
  Milliseconds give_up{15'000};
  // Goes on while the machine sleeps or this process is stopped.
  std::function<std::chrono::nanoseconds()> clock = boot_time;
  static std::chrono::nanoseconds boot_time();
};

// What there is to do about a lease as the API shows it.
enum class LeaseMove : std::uint8_t {
  wait,   // another one holds it
  renew,  // it is ours
  take,   // nobody holds it, or its holder has not renewed it in time
};
// unchanged: how long the lease has looked like this, by our own clock: those of other machines are not
// believed.
LeaseMove judge_lease(const Json& lease, const std::string& identity, Milliseconds unchanged);

// The lease as it is to be written; an empty identity gives it up. Without a lease before, a new one.
// memory: what its holder remembers (memory.hpp), as text; empty: what stands there stays.
Json renewed_lease(const Json& before, const LeaseOptions& options, const std::string& identity,
                   std::chrono::system_clock::time_point now, const std::string& memory = {});

// Of all processes with the same lease, one leads at a time.
class Leader {
 public:
  // The client must outlive it. on_change is called from the loop with each gain and loss.
  Leader(kube::Client& client, LeaseOptions options, std::function<void(bool leads)> on_change);
  ~Leader();
  Leader(const Leader&) = delete;
  Leader& operator=(const Leader&) = delete;

  void start();
  // Gives the lease up if it is ours, so that another need not wait for its end; calls done, from the loop,
  // soon even without an answer. It does not lead any more from this call on, nor ever again.
  void release(std::function<void()> done);
  // By the clock at this moment, whatever the timers have come to: ask before each action.
  bool leads() const;
  // The lease was seen within its duration: who leads is known.
  bool knows() const;
  const std::string& holder() const { return holder_; }
  // Written with each renewal from now on, and when the lease is given back, as long as it is ours.
  void remember(std::string memory) { memory_ = std::move(memory); }
  // Called from the loop when what operators have drained (drain_list.hpp) is another than it was.
  void on_drained(std::function<void()> handler) { on_drained_ = std::move(handler); }
  // The lease as it was last seen; null: never.
  const Json& lease() const { return lease_; }

 private:
  void tick();
  void look();
  void write(const Json& lease);
  void seen(const std::string& body);
  void mine(const std::string& body, std::chrono::nanoseconds asked);
  void failed(const kube::Failure& failure);
  void give_back(bool again);
  void set_leads(bool leads);
  void look_at_drained();
  void send(std::string method, std::string path, std::string body, kube::AnswerHandler handler);
  std::string path(bool named) const;

  kube::Client& client_;
  LeaseOptions options_;
  std::function<void(bool)> on_change_;
  std::function<void()> released_, on_drained_;
  bool leads_ = false, ending_ = false;
  std::string holder_, last_failure_, memory_, drained_;
  Json lease_;                           // as last seen
  SteadyTime changed_, seen_;            // when it was first seen like this; when it was last seen at all
  std::chrono::nanoseconds renewed_{0};  // when the last successful renewal was sent
  Loop::TimerId timer_ = 0, loss_ = 0;
  std::unique_ptr<http::Operation> call_;
};

}  // namespace glidepod::provisioner
