#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/condor/classad.hpp"
#include "provisioner/decide/decide.hpp"
#include "provisioner/demand/contract.hpp"
#include "provisioner/demand/pilot_ad.hpp"

namespace glidepod::provisioner {

// What a backend has, as of one moment.
struct Seen {
  std::vector<Pod> pods;
  Capacity capacity;
  std::optional<std::string> blind;   // why the pods could not be seen
  std::vector<std::string> problems;  // what could not be read, but cost only itself
  // Of several named places those that could not be seen, and why; capacity has the others'.
  std::map<std::string, std::string> unseen = {};
};

// An Event of a pod, for its cluster to show.
struct PodEvent {
  std::string pod, reason, message;  // the reason is one word
  bool warning = false;
};

// Where pods run. Handlers are called once, from the loop, never from within the call.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual void look(Time now, std::function<void(Seen)> done) = 0;
  // The demand in the groups that this backend makes pods for; those it cannot serve go into the capacity.
  virtual Demand fit(Demand demand, Capacity& capacity) const = 0;
  // New pods are kept from these nodes from now on.
  virtual void avoid(const std::vector<std::string>&) {}
  // What the groups' jobs want, before a plan's pods are made.
  virtual void want(const std::map<Group, GroupDemand>&) {}
  // Makes one pod. Where it is not known whether it was made, that is an error; the next look tells.
  virtual void create(const Group& group, const std::string& name,
                      std::function<void(Result<void>)> done) = 0;
  // Removes one pod, if it still is what it was seen to be.
  virtual void remove(const std::string& name, std::function<void(Result<void>)> done) = 0;

  // Tells a pod's pilot that it is drained, so that it ends after its last job; or, where it is killed, says
  // so in the pod and removes it, whatever runs there. A backend that cannot says so at once.
  virtual void drain(const Draining& draining, std::function<void(Result<void>)> done) {
    const auto call = std::move(done);
    call(error("{}: its pilot cannot be told", draining.pod));
  }

  // Has the cluster show the event, if that works: nobody waits for it, and nothing is decided by it.
  virtual void tell(const PodEvent&, Time) {}

  // Nothing is tried again any more; what is under way is waited for.
  virtual void wind_up() {}

  virtual const std::string& image() const = 0;
  // Which ads of the pool are its pilots', and the attribute that holds the pod's name.
  virtual std::string slot_constraint() const = 0;
  virtual std::string slot_pod_attribute() const = 0;
  // The named places that it makes pods in, with what is theirs; none: it has one, without a name. Names of
  // pods and nodes then have theirs in front (place.hpp), here and in all of the above.
  virtual std::vector<PlacePolicy> places() const { return {}; }
  // The place of a slot, by these attributes of its ad; empty: of none.
  virtual std::vector<std::string> slot_place_attributes() const { return {}; }
  virtual std::string place_of_slot(const condor::Ad&) const { return {}; }
  // Which jobs its pilots take, an expression over the job; empty: all.
  virtual std::vector<JobClause> jobs_taken() const { return {}; }
  // What the ads of its pilots have beside HTCondor's own and those of images/pilot/config.d.
  virtual PilotAttributes pilot_attributes() const { return {}; }
};

}  // namespace glidepod::provisioner
