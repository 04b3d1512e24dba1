#include "provisioner/simulate/simulate.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <queue>
#include <set>

#include "provisioner/supply/place.hpp"
#include "provisioner/supply/sights.hpp"

namespace glidepod::provisioner {

namespace {

// splitmix64: small, and the same everywhere, which the standard's distributions are not.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  // From 0 up to but not including 1.
  double share() {
    state_ += 0x9e3779b97f4a7c15u;
    auto z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1.0p-53;
  }
  Seconds around(Seconds mean) {
    return Seconds(std::llround(static_cast<double>(mean.count()) * (0.5 + share())));
  }
  Seconds exponential(Seconds mean) {
    return Seconds(1 + std::llround(-std::log1p(-share()) * static_cast<double>(mean.count())));
  }

 private:
  std::uint64_t state_;
};

struct SimulatedPod {
  std::size_t group;
  PodState state = PodState::unschedulable;
  std::uint32_t version = 0;  // an event for an older one is void
  Seconds born{0}, since{0};
  bool had_job = false, broken = false, ended = false;
  std::size_t stream = 0;  // of its job
  std::size_t place = 0;
  bool gone = false;  // it has been removed
};

enum class Kind : std::uint8_t { scheduled, pulled, registered, job_done, idle_too_long, gives_up };

struct Event {
  Seconds at;
  std::uint64_t order;  // ties in the order of their making
  std::size_t pod;
  std::uint32_t version;
  Kind kind;
  bool operator>(const Event& other) const { return std::pair(at, order) > std::pair(other.at, other.order); }
};

// The cluster, the pool and the queue, moved on from event to event.
class World {
 public:
  World(const Scenario& scenario)
      : scenario_(scenario), model_(scenario.model), random_(scenario.model.seed) {
    for (const auto& stream : scenario.streams) {
      const auto found = std::find(groups_.begin(), groups_.end(), stream.group);
      if (found == groups_.end()) groups_.push_back(stream.group);
      group_of_.push_back(static_cast<std::size_t>(std::find(groups_.begin(), groups_.end(), stream.group) -
                                                   groups_.begin()));
    }
    queues_.resize(groups_.size());
    supplies_.resize(groups_.size());
    outcomes_.resize(groups_.size());
    unmatched_.resize(groups_.size());
    unplaceable_.resize(groups_.size(), false);
    for (std::size_t i = 0; i < scenario.streams.size(); ++i)
      if (!scenario.streams[i].fits) unplaceable_[group_of_[i]] = true;
    sites_.push_back({.room = model_.room});
    for (const auto& place : scenario.places) sites_.push_back({.room = place.room});
    arrived_.resize(scenario.streams.size(), 0);
    idle_.resize(scenario.streams.size(), 0);
  }

  void advance(Seconds to) {
    while (true) {
      const auto next = events_.empty() ? to : std::min(events_.top().at, to);
      // Jobs and matches go by the negotiator's cycle, events by their own time.
      while (negotiated_ + model_.negotiation <= next) negotiate(negotiated_ + model_.negotiation);
      if (events_.empty() || events_.top().at > to) break;
      const auto event = events_.top();
      events_.pop();
      if (pods_[event.pod].version == event.version) handle(event);
    }
    now_ = to;
  }

  // place: 0 is the only one, else its number from 1 on.
  void create(const Group& group, std::int64_t count, std::size_t place = 0) {
    const auto index =
        static_cast<std::size_t>(std::find(groups_.begin(), groups_.end(), group) - groups_.begin());
    for (std::int64_t i = 0; i < count; ++i) {
      pods_.push_back({.group = index, .born = now_, .since = now_, .place = place});
      ++supplies_[index].states[PodState::unschedulable];
      jobless_.insert(pods_.size() - 1);
      if (!unplaceable_[index]) sites_[place].pending.push_back(pods_.size() - 1);
      ++submitted_;
    }
    schedule(now_);
  }

  // Only pods that supply() told of.
  void remove(const std::string& name) {
    const auto index = static_cast<std::size_t>(std::stoull(std::string(without_place(name))));
    pods_[index].gone = true;
    if (pods_[index].ended) return;
    auto& site = sites_[pods_[index].place];
    const auto waits = std::find(site.pending.begin(), site.pending.end(), index);
    if (waits != site.pending.end())
      site.pending.erase(waits);
    else if (!unplaceable_[pods_[index].group])
      --site.placed;
    move(index, PodState::succeeded, now_);
    pods_[index].ended = true;
    schedule(now_);
  }

  Demand demand() const {
    Demand result;
    if (now_ >= model_.blind_from && now_ < model_.blind_until) result.blind = "the pool cannot be asked";
    for (std::size_t i = 0; i < idle_.size(); ++i) {
      if (idle_[i] == 0) continue;
      auto& group = result.groups[scenario_.streams[i].group];
      group.idle += idle_[i];
      group.owners[scenario_.streams[i].owner] += idle_[i];
    }
    return result;
  }

  Supply supply(const PolicySettings& rules) {
    Supply result;
    const Time now(now_);
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      auto pods = supplies_[g];
      const auto count = [&pods](PodState state) {
        const auto found = pods.states.find(state);
        return found == pods.states.end() ? std::int64_t{0} : found->second;
      };
      pods.broken = count(PodState::pull_error) + overdue_[g];
      pods.waiting = count(PodState::unschedulable) + count(PodState::pulling) +
                     count(PodState::unregistered) - overdue_[g];
      pods.unmatched = count(PodState::unmatched);
      pods.claimed = count(PodState::claimed);
      auto& o = outcomes_[g];
      for (auto* times : {&o.failures, &o.registrations})
        while (!times->empty() && times->front() + rules.breaker_window < now) times->pop_front();
      for (auto* times : {&o.wasted, &o.used})
        while (!times->empty() && times->front() + rules.waste_window < now) times->pop_front();
      pods.failures.assign(o.failures.begin(), o.failures.end());
      pods.registrations.assign(o.registrations.begin(), o.registrations.end());
      pods.wasted = static_cast<std::int64_t>(o.wasted.size());
      pods.used = static_cast<std::int64_t>(o.used.size());
      result.groups[groups_[g]] = std::move(pods);
    }
    for (const auto index : jobless_) {
      const auto& pod = pods_[index];
      const Time since(pod.born);
      result.jobless.push_back({std::to_string(index), groups_[pod.group], pod.state, since});
      if (pod.state != PodState::unschedulable) continue;
      auto& group = result.groups[groups_[pod.group]];
      const bool first = group.unschedulable++ == 0;
      group.unschedulable_since = first ? since : std::min(group.unschedulable_since, since);
    }
    result.claimed_by_owner = claimed_by_owner_;
    return result;
  }

  // With named places: as tracker and sights have it from the pods that can be seen and the ads of all.
  Supply supply_of_places() {
    const auto& policy = scenario_.policy;
    std::map<std::string, std::string> unseen;
    std::vector<std::string> names;
    std::set<std::string, std::less<>> images;
    for (std::size_t i = 0; i < policy.places.size(); ++i) {
      names.push_back(policy.places[i].name);
      images.insert(policy.places[i].image);
      const auto& place = scenario_.places[i];
      if (now_ >= place.down_from && now_ < place.down_until)
        unseen[names.back()] = "its API does not answer";
    }
    std::vector<Pod> seen;
    std::vector<Slot> slots;
    for (std::size_t i = 0; i < pods_.size(); ++i) {
      const auto& pod = pods_[i];
      if (pod.gone) continue;
      const auto& place = policy.places[pod.place - 1];
      const auto name = in_place(place.name, std::to_string(i));
      const bool in_pool = pod.state == PodState::unmatched || pod.state == PodState::claimed;
      if (in_pool)
        slots.push_back({name, pod.state == PodState::claimed,
                         pod.state == PodState::claimed ? scenario_.streams[pod.stream].owner : ""});
      if (unseen.contains(place.name)) continue;
      auto& added = seen.emplace_back(Pod{name, groups_[pod.group], place.image,
                                          in_pool ? PodState::unregistered : pod.state, Time(pod.since)});
      added.jobless = jobless_.contains(i);
    }
    auto places = sights_.complete(seen, names, unseen, slots, policy.settings.outage_shift, Time(now_));
    return tracker_.observe(seen, slots, policy.settings, images, std::move(places), Time(now_));
  }

  Sample sample(Supply supply) const {
    Sample s;
    s.at = now_;
    for (const auto& queue : queues_) s.idle += static_cast<std::int64_t>(queue.size());
    for (const auto& [group, pods] : supply.groups) {
      s.waiting += pods.waiting;
      s.unmatched += pods.unmatched;
      s.claimed += pods.claimed;
      s.broken += pods.broken;
    }
    s.running = s.claimed;
    s.done = done_;
    s.submitted = submitted_;
    s.wasted_pods = wasted_;
    s.used_hours = used_hours_;
    s.idle_hours = idle_hours_;
    return s;
  }

 private:
  // Where pods wait for a node.
  struct Site {
    std::int64_t room = 0, placed = 0;
    std::deque<std::size_t> pending = {};
  };
  struct Outcomes {
    std::deque<Time> failures, registrations, wasted, used;
  };

  void at(Seconds when, std::size_t pod, Kind kind) {
    events_.push({when, ++order_, pod, pods_[pod].version, kind});
  }

  // Into another state; what was planned for the old one is void.
  void move(std::size_t index, PodState state, Seconds now) {
    auto& pod = pods_[index];
    auto& states = supplies_[pod.group].states;
    const auto hours = std::chrono::duration<double, std::ratio<3600>>(now - pod.since).count();
    if (pod.state == PodState::claimed) used_hours_ += hours;
    if (pod.state == PodState::unmatched) idle_hours_ += hours;
    --states[pod.state];
    ++states[state];
    if (state == PodState::unschedulable || state == PodState::pull_error)
      jobless_.insert(index);
    else
      jobless_.erase(index);
    pod.state = state;
    pod.since = now;
    ++pod.version;
  }

  void end(std::size_t index, Seconds now) {
    auto& pod = pods_[index];
    auto& outcomes = outcomes_[pod.group];
    if (pod.had_job) {
      outcomes.used.emplace_back(now);
    } else if (pod.state == PodState::unmatched) {
      outcomes.wasted.emplace_back(now);
      ++wasted_;
    }
    if (pod.broken && pod.state == PodState::unregistered) --overdue_[pod.group];
    move(index, PodState::succeeded, now);
    pod.ended = true;
    --sites_[pod.place].placed;
    schedule(now);
  }

  void schedule(Seconds now) {
    for (auto& site : sites_)
      while (!site.pending.empty() && (site.room == 0 || site.placed < site.room)) {
        at(now + random_.around(model_.scheduling), site.pending.front(), Kind::scheduled);
        site.pending.pop_front();
        ++site.placed;
      }
  }

  void fail(SimulatedPod& pod, Seconds now) {
    if (!std::exchange(pod.broken, true)) outcomes_[pod.group].failures.emplace_back(now);
  }

  void handle(const Event& event) {
    auto& pod = pods_[event.pod];
    const auto now = event.at;
    switch (event.kind) {
      case Kind::scheduled:
        move(event.pod, PodState::pulling, now);
        at(now + random_.around(model_.pull), event.pod, Kind::pulled);
        return;
      case Kind::pulled:
        if ((now >= model_.pulls_fail_from && now < model_.pulls_fail_until) ||
            random_.share() < model_.pull_failures) {
          fail(pod, now);
          move(event.pod, PodState::pull_error, now);
          return at(now + Seconds(300), event.pod, Kind::pulled);
        }
        move(event.pod, PodState::unregistered, now);
        if (random_.share() < model_.silent)
          return at(now + scenario_.policy.settings.register_limit, event.pod, Kind::gives_up);
        return at(now + random_.around(model_.registration), event.pod, Kind::registered);
      case Kind::gives_up:
        if (pod.broken) return end(event.pod, now);
        fail(pod, now);
        ++overdue_[pod.group];
        return at(now + Seconds(3600), event.pod, Kind::gives_up);
      case Kind::registered:
        outcomes_[pod.group].registrations.emplace_back(now);
        return wait_for_job(event.pod, now);
      case Kind::job_done:
        ++done_;
        --claimed_by_owner_[scenario_.streams[pod.stream].owner];
        return wait_for_job(event.pod, now);
      case Kind::idle_too_long:
        return end(event.pod, now);
    }
  }

  void wait_for_job(std::size_t index, Seconds now) {
    const auto& pod = pods_[index];
    if (model_.lifetime > Seconds(0) && now - pod.born > model_.lifetime) return end(index, now);
    // A claim is used for the next job of the group without the negotiator.
    if (pod.state == PodState::claimed && !queues_[pod.group].empty()) return start_job(index, now);
    move(index, PodState::unmatched, now);
    unmatched_[pod.group].emplace_back(index, pods_[index].version);
    at(now + model_.idle_limit, index, Kind::idle_too_long);
  }

  void start_job(std::size_t index, Seconds now) {
    auto& pod = pods_[index];
    const auto stream = queues_[pod.group].front();
    queues_[pod.group].pop_front();
    move(index, PodState::claimed, now);
    pod.had_job = true;
    pod.stream = stream;
    --idle_[stream];
    ++claimed_by_owner_[scenario_.streams[stream].owner];
    at(now + random_.exponential(scenario_.streams[stream].runtime), index, Kind::job_done);
  }

  void negotiate(Seconds now) {
    negotiated_ = now;
    for (std::size_t i = 0; i < scenario_.streams.size(); ++i) {
      const auto& stream = scenario_.streams[i];
      if (now < stream.start) continue;
      if (stream.leave > Seconds(0) && now >= stream.leave) {
        idle_[i] -= static_cast<std::int64_t>(std::erase(queues_[group_of_[i]], i));
        continue;
      }
      const auto until = stream.until > Seconds(0) ? std::min(now, stream.until) : now;
      const auto hours =
          std::chrono::duration<double, std::ratio<3600>>(std::max(until - stream.start, Seconds(0))).count();
      const auto total = stream.burst + static_cast<std::int64_t>(hours * stream.per_hour);
      for (; arrived_[i] < total; ++arrived_[i]) {
        queues_[group_of_[i]].push_back(i);
        ++idle_[i];
      }
    }
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      auto& waiting = unmatched_[g];
      while (!waiting.empty() && !queues_[g].empty()) {
        const auto [index, version] = waiting.front();
        waiting.pop_front();
        if (pods_[index].version == version) start_job(index, now);
      }
    }
  }

  const Scenario& scenario_;
  const Model& model_;
  Random random_;
  Seconds now_{0}, negotiated_{0};
  std::vector<Group> groups_;
  std::vector<std::size_t> group_of_;            // of a stream
  std::vector<std::deque<std::size_t>> queues_;  // the stream of each idle job
  std::vector<std::int64_t> idle_;               // of a stream
  std::vector<GroupSupply> supplies_;
  std::map<std::size_t, std::int64_t> overdue_;
  std::vector<Outcomes> outcomes_;
  std::vector<std::deque<std::pair<std::size_t, std::uint32_t>>> unmatched_;
  std::vector<std::int64_t> arrived_;
  std::vector<Site> sites_;  // the only place, then the named ones
  std::set<std::size_t> jobless_;
  std::vector<bool> unplaceable_;  // of a group
  std::vector<SimulatedPod> pods_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::map<std::string, std::int64_t> claimed_by_owner_;
  std::uint64_t order_ = 0;
  std::int64_t submitted_ = 0, wasted_ = 0, done_ = 0;
  double used_hours_ = 0, idle_hours_ = 0;
  Sights sights_;
  Tracker tracker_;
};

}  // namespace

std::vector<Sample> simulate(const Scenario& scenario, const OnPlan& on_plan) {
  World world(scenario);
  History history;
  std::vector<Sample> samples;
  for (Seconds now{0}; now <= scenario.length; now += scenario.cycle) {
    world.advance(now);
    const auto demand = world.demand();
    const auto& places = scenario.policy.places;
    auto supply = places.empty() ? world.supply(scenario.policy.settings) : world.supply_of_places();
    auto plan = decide(demand, supply, {}, scenario.policy, Time(now), std::move(history));
    if (on_plan) on_plan(demand, supply, plan);
    for (const auto& decision : plan.decisions) {
      if (places.empty()) world.create(decision.group, decision.submit);
      for (std::size_t i = 0; i < decision.places.size(); ++i)
        world.create(decision.group, decision.places[i].submit, i + 1);
    }
    for (const auto& removal : plan.removals) world.remove(removal.pod);
    history = std::move(plan.history);
    samples.push_back(world.sample(std::move(supply)));
  }
  return samples;
}

}  // namespace glidepod::provisioner
