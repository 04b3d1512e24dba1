#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lib/condor/pool.hpp"
#include "provisioner/backends/backend.hpp"
#include "provisioner/demand/demand.hpp"
#include "provisioner/service/memory.hpp"
#include "provisioner/supply/sights.hpp"

namespace glidepod::provisioner {

// Both sides, as of one moment.
struct Observation {
  Time at;
  Demand demand;
  Supply supply;
  Capacity capacity;
  // What the supply was made of; empty where that could not be seen.
  std::vector<Pod> pods;
  std::vector<Slot> slots;
};

// What became of a plan.
struct Applied {
  std::int64_t created = 0, removed = 0, not_created = 0, not_removed = 0;
  std::int64_t drained = 0;  // pods whose pilots were told
  std::vector<std::string> problems;
  // Of these, the pods that could not be made: one of a group and place.
  struct Unmade {
    Group group;
    bool by_quota = false;
    std::string why;
  };
  std::vector<Unmade> unmade;
};

// One look at the pool and the backend, the decision, and its execution. What it learns of pods, nodes and
// breakers lasts as long as it does, unless another one inherits or recalls it.
class Cycle {
 public:
  // All of these must outlive it.
  Cycle(DemandSource& demand, condor::CommandRunner& runner, Backend& backend, HtcondorSettings htcondor,
        std::string app_name, Policy policy);

  // Runs the first function, and then the second from the loop.
  using Aside = std::function<void(std::function<void()> work, std::function<void()> then)>;
  // What takes long for many pods is done there, so that nothing else that the loop has to do waits for it.
  // Without that it is done at once.
  void work_aside(Aside aside) { aside_ = std::move(aside); }

  // One after the other, never two at a time; the handlers come from the loop. Until done is called, and
  // while decide() runs, nothing but act_while() and wind_up() may be called from another thread.
  void observe(Time now, std::function<void(Observation)> done);
  Plan decide(const Observation& seen);
  // Drains, removes and makes the plan's pods, in this order and some at a time. A group whose pod could not
  // be made gets no more this time.
  void apply(const Plan& plan, Time now, std::function<void(Applied)> done);
  // Takes over what another one has learnt of pods and breakers.
  void inherit(Cycle& other);
  // The same in a form that another process can go on from (memory.hpp), as of then.
  nlohmann::json memory(Time now) const;
  // Goes on from that, in place of what it has learnt itself; changes nothing where that is malformed.
  Result<void> recall(const nlohmann::json& memory, Time now);
  // What is out of use from the next look on.
  void drain(DrainList list) { policy_.drained = std::move(list); }
  // Asked before each action: nothing is begun where it says no.
  void act_while(std::function<bool()> may_act) { may_act_ = std::move(may_act); }
  // Pods that a plan still has to make so long after its first one are left to the next plan.
  void create_within(Seconds limit) { create_within_ = limit; }
  void set_clock(std::function<SteadyTime()> clock) { clock_ = std::move(clock); }  // for tests
  // Nothing new is begun and nothing tried again; what is under way is waited for. For good.
  void wind_up() {
    winding_up_ = true;
    backend_.wind_up();
  }

 private:
  struct Look;
  struct Work;
  void read_slots(const std::shared_ptr<Look>& look);
  void read_priorities(const std::shared_ptr<Look>& look);
  void finish_look(const std::shared_ptr<Look>& look);
  void digest(Look& look);
  Supply supply_of(Look& look);
  std::string image_of(std::string_view pod) const;
  void next_work(const std::shared_ptr<Work>& work);
  bool out_of_time(Work& work) const;
  std::vector<std::string> kept_off(std::vector<std::string> avoid) const;

  DemandSource& demand_;
  condor::Pool pool_;
  Backend& backend_;
  HtcondorSettings htcondor_;
  std::string app_name_;
  Policy policy_;
  Tracker tracker_;
  Sights sights_;
  History history_;
  Priorities priorities_;
  Time priorities_asked_{}, priorities_known_{};
  Aside aside_ = [](const std::function<void()>& work, const std::function<void()>& then) {
    work();
    then();
  };
  std::function<bool()> may_act_ = [] { return true; };
  Seconds create_within_{120};
  std::function<SteadyTime()> clock_ = [] { return std::chrono::steady_clock::now(); };
  bool winding_up_ = false;
};

}  // namespace glidepod::provisioner
