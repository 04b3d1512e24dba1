#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/kube/pod.hpp"
#include "pilot-agent/core/actions.hpp"
#include "pilot-agent/core/state.hpp"
#include "pilot-agent/core/transitions.hpp"
#include "pilot-agent/core/types.hpp"

namespace glidepod::agent {

// A job that is itself a pilot: its own jobs run in further payload containers of the pod.
struct PilotJob {
  JobId id = 0;
  Request request;
};

// The payload containers of the pod, and what is asked about all of them. A container's state changes only by
// become(). A pointer stays valid, since no container is ever removed; null: there is none.
class Containers {
 public:
  // names: those of all payload containers; empty: the pod or the glues tell them.
  Containers(Actions& actions, const std::vector<std::string>& names);

  auto begin() { return all_.begin(); }
  auto end() { return all_.end(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  std::size_t size() const { return all_.size(); }
  Container& operator[](std::size_t i) { return all_[i]; }
  bool names_given() const { return names_given_; }
  Container& add(std::string_view name);
  // The pod is known, and with it its payload containers.
  void begin(const kube::Pod& pod);
  bool known() const { return known_; }
  // Whether this pod is no older than those that were seen: one API server may be behind another.
  bool is_news(const kube::Pod& pod);

  void become(Container& container, AnyState state, EventKind event);
  // For tests: the observer is told of every transition.
  using Observer = std::function<void(const Container&, const Transition&)>;
  void observe(Observer observer) { observer_ = std::move(observer); }

  // The container of this name, of this glue, with this job, whose glue clears under this number, with the
  // job of this client, and the one whose image this patch changes.
  Container* find(std::string_view name);
  const Container* find(std::string_view name) const;
  Container* of_glue(GlueId glue);
  Container* of_job(GlueId glue, JobId job);
  Container* of_clearing(GlueId glue, JobId id);
  Container* of_client(ClientId client);
  Container* of_patch(std::uint64_t attempt);
  std::optional<State> state_of(std::string_view name) const;
  // Why a Hello with this container's name does not come from its glue; empty: nothing speaks against it.
  std::string stranger(const Container& container, const std::string& instance) const;

  // This client's request, if it waits in a container; and forgets it.
  Waiting* waiting_of(ClientId client);
  void drop_waiting(ClientId client, EventKind event);

  // The container that the slot has tested with this very request.
  Container* reserved_for(const Request& request);
  void free_reservations(const Request& request);
  // An idle one that runs this image, for this owner; and one that is being made ready with it while no
  // request waits.
  Container* warm_for(const Image& image, const std::string& owner);
  Container* spare_for(const Image& image);
  // The one in this state that was used longest ago.
  Container* coldest(State state, Time now);
  // The idle one with the least memory; `first`, one of them, if all have the same.
  Container* smallest_idle(Container* first, Time now);
  Container* for_probe();
  Container* for_test(Time now);

  // The one with the running job that this visit means.
  const Container* to_visit(const Visit& visit) const;

  // The pilot job that runs as this user in the container of this id. Only the processes of that job may ask
  // for containers from there.
  std::optional<PilotJob> pilot_in(std::string_view instance, uid_t uid) const;
  std::optional<PilotJob> pilot_of(JobId job) const;
  bool has_inner(JobId outer) const;
  // Whether the pilot job's own job can get a container, while so many requests wait in the queue.
  Result<void> check_inner(const Request& request, std::size_t queued) const;

  bool busy() const;  // a job is under way, or a glue clears
  // A job of this user runs, or is about to be launched.
  bool has_job_of(uid_t uid) const;
  // A container removes what a job of this user has left.
  bool is_clearing(uid_t uid) const;
  // An earlier agent may have had a job in some container that runs.
  bool has_inherited() const;
  bool has_sidecars() const;
  // The pod was made with a job's image in some container, and the glue of that container has yet to connect.
  bool expects_births() const;

  // The containers whose glue is not connected, or is about to be stopped for another image.
  std::vector<std::string> missing() const;
  // For use after the glues were told to finish. ending(): some glue that was told so has not gone yet.
  // unended(): the containers whose glue has not gone, or was stopped from outside meanwhile, so that the
  // kubelet starts the container again.
  bool ending() const;
  std::vector<std::string> unended() const;

  bool is_payload(const kube::Pod& pod, const kube::ContainerSpec& spec) const;
  // The containers of the pod that are neither the pilot nor payload containers, such as those that a service
  // mesh adds.
  std::vector<std::string> others(const kube::Pod& pod) const;
  // Some payload container does not start again by itself where the pod's restartPolicy is Never. May be
  // asked before the containers are known.
  bool needs_restarts(const kube::Pod& pod) const;

 private:
  friend struct Inside;  // as in core.hpp
  Actions& actions_;
  bool names_given_, known_ = false;
  std::int64_t version_ = 0;  // the newest resourceVersion seen
  std::deque<Container> all_;
  Observer observer_;
};

}  // namespace glidepod::agent
