#include "provisioner/simulate/world.hpp"

#include <algorithm>

#include "provisioner/supply/place.hpp"

namespace glidepod::provisioner {

namespace {

std::vector<Group> groups_of(const Scenario& scenario) {
  std::vector<Group> result;
  for (const auto& stream : scenario.streams)
    if (std::ranges::find(result, stream.group) == result.end()) result.push_back(stream.group);
  return result;
}

}  // namespace

World::World(const Scenario& scenario)
    : scenario_(scenario),
      model_(scenario.model),
      random_(scenario.model.seed),
      groups_(groups_of(scenario)),
      streams_of_(groups_.size()),
      arrived_(scenario.streams.size(), 0),
      idle_(scenario.streams.size(), 0),
      cluster_(scenario, groups_, random_),
      avoids_(1),
      supplies_(groups_.size()),
      outcomes_(groups_.size()),
      unmatched_(groups_.size()),
      unplaceable_(groups_.size(), false) {
  for (std::size_t i = 0; i < scenario.streams.size(); ++i) {
    const auto& stream = scenario.streams[i];
    const auto group = static_cast<std::size_t>(std::ranges::find(groups_, stream.group) - groups_.begin());
    group_of_.push_back(group);
    streams_of_[group].push_back(i);
    if (!stream.fits) unplaceable_[group] = true;
    condor::Ad job;
    if (!stream.requirements.empty()) job.set_expression("Requirements", stream.requirements);
    // Of a provisioner that knows nothing of pilots they are ours all the same.
    const PilotAttributes ours{.known = true, .more = {}};
    unmet_.push_back(
        unmet_by_pilots(job, stream.group, scenario.pilots.known ? scenario.pilots : ours).has_value());
    uncounted_.push_back(unmet_by_pilots(job, stream.group, scenario.pilots).has_value());
  }
  for (const auto& trouble : cluster_.troubles()) {
    if (!trouble.down) continue;
    events_.push({trouble.from, ++order_, trouble.node, 0, Kind::node_down});
    events_.push({trouble.until, ++order_, trouble.node, 0, Kind::node_back});
  }
}

bool World::is_void(const Event& event) const {
  return event.kind < Kind::node_down && pods_[event.of].version != event.version;
}

void World::advance(Seconds to) {
  while (true) {
    const auto next = events_.empty() ? to : std::min(events_.top().at, to);
    // Jobs and matches go by the negotiator's cycle, events by their own time.
    while (negotiated_ + model_.negotiation <= next) negotiate(negotiated_ + model_.negotiation);
    if (events_.empty() || events_.top().at > to) break;
    const auto event = events_.top();
    events_.pop();
    if (!is_void(event)) handle(event);
  }
  now_ = to;
}

void World::avoid(std::vector<std::string> nodes) {
  if (nodes != avoids_.back()) avoids_.push_back(std::move(nodes));
}

void World::create(const Group& group, std::int64_t count, std::size_t place) {
  const auto g = static_cast<std::size_t>(std::ranges::find(groups_, group) - groups_.begin());
  for (std::int64_t i = 0; i < count; ++i) {
    const auto index = pods_.size();
    const Cluster::Wish wish{place, &avoids_.back()};
    pods_.push_back({.group = g, .wish = wish, .born = now_, .since = now_});
    ++supplies_[g].states[PodState::unschedulable];
    jobless_.insert(index);
    ++submitted_;
    if (unplaceable_[g]) continue;
    if (const auto node = cluster_.place(index, g, wish); node != Cluster::k_nowhere)
      goes_to(index, node, now_);
  }
}

void World::remove(const std::string& name) {
  const auto index = static_cast<std::size_t>(std::stoull(std::string(without_place(name))));
  pods_[index].gone = true;
  if (pods_[index].state != PodState::succeeded) end(index, now_, End::taken);
}

Sample World::sample(const Demand& demand, const Supply& supply) const {
  Sample s;
  s.at = now_;
  for (const auto idle : idle_) s.idle += idle;
  for (const auto& [group, pods] : supply.groups) {
    s.waiting += pods.waiting;
    s.unmatched += pods.unmatched;
    s.claimed += pods.claimed;
    s.broken += pods.broken;
  }
  std::map<std::string, std::int64_t> hungry;
  for (const auto& [group, jobs] : demand.groups)
    for (const auto& [owner, idle] : jobs.owners) hungry[owner] = 0;
  for (auto& [owner, pods] : hungry)
    if (const auto found = claimed_by_owner_.find(owner); found != claimed_by_owner_.end())
      pods = found->second;
  const auto fewer = [](const auto& a, const auto& b) { return a.second < b.second; };
  if (!hungry.empty()) {
    s.hungry_least = std::ranges::min_element(hungry, fewer)->second;
    s.hungry_most = std::ranges::max_element(hungry, fewer)->second;
  }
  s.running = s.claimed;
  s.done = done_;
  s.submitted = submitted_;
  s.wasted_pods = wasted_;
  s.used_hours = used_hours_;
  s.idle_hours = idle_hours_;
  return s;
}

void World::at(Seconds when, std::size_t pod, Kind kind) {
  events_.push({when, ++order_, pod, pods_[pod].version, kind});
}

Outcome World::outcome(std::size_t index, Seconds now) const {
  const auto node = pods_[index].node;
  return {Time(now), std::to_string(index), node == Cluster::k_nowhere ? "" : cluster_.name(node)};
}

// Into another state; what was planned for the old one is void.
void World::move(std::size_t index, PodState state, Seconds now) {
  auto& pod = pods_[index];
  auto& states = supplies_[pod.group].states;
  const auto hours = std::chrono::duration<double, std::ratio<3600>>(now - pod.since).count();
  if (pod.state == PodState::claimed) used_hours_ += hours;
  if (pod.state == PodState::unmatched) idle_hours_ += hours;
  const auto in_pool = [](PodState s) { return s == PodState::claimed || s == PodState::unmatched; };
  if (in_pool(state) != in_pool(pod.state)) {
    auto& pods = outcomes_[pod.group].at_work[cluster_.name(pod.node)];
    pods += in_pool(state) ? 1 : -1;
    if (pods == 0) outcomes_[pod.group].at_work.erase(cluster_.name(pod.node));
  }
  if (pod.state == PodState::unmatched) unmatched_[pod.group].erase(index);
  if (state == PodState::unmatched) unmatched_[pod.group].insert(index);
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

void World::end(std::size_t index, Seconds now, End how) {
  auto& pod = pods_[index];
  auto& outcomes = outcomes_[pod.group];
  if (pod.state == PodState::claimed && how == End::taken) {
    ++idle_[pod.stream];
    --claimed_by_owner_[scenario_.streams[pod.stream].owner];
  }
  if (pod.had_job) {
    outcomes.used.emplace_back(now);
  } else if (pod.state == PodState::unmatched && how == End::own) {
    outcomes.wasted.emplace_back(now);
    ++wasted_;
  }
  if (pod.overdue) --overdue_[pod.group];
  move(index, PodState::succeeded, now);
  if (pod.node == Cluster::k_nowhere) return cluster_.withdraw(index, pod.group);
  cluster_.leave(index, pod.group, pod.node);
  fill(pod.node, now);
}

void World::goes_to(std::size_t index, std::size_t node, Seconds now) {
  pods_[index].node = node;
  at(now + random_.around(model_.scheduling), index, Kind::scheduled);
}

void World::fill(std::size_t node, Seconds now) {
  for (const auto index : cluster_.fill(node)) goes_to(index, node, now);
}

void World::fail(std::size_t index, Seconds now) {
  auto& pod = pods_[index];
  if (!std::exchange(pod.broken, true)) outcomes_[pod.group].failures.push_back(outcome(index, now));
}

void World::handle(const Event& event) {
  const auto now = event.at;
  switch (event.kind) {
    case Kind::scheduled:
      move(event.of, PodState::pulling, now);
      return at(now + random_.around(model_.pull), event.of, Kind::pulled);
    case Kind::pulled:
      return pulled(event.of, now);
    case Kind::crashes:
      fail(event.of, now);
      return end(event.of, now);
    case Kind::gives_up:
      if (std::exchange(pods_[event.of].overdue, true)) return end(event.of, now);
      fail(event.of, now);
      ++overdue_[pods_[event.of].group];
      return at(now + Seconds(3600), event.of, Kind::gives_up);
    case Kind::registered:
      outcomes_[pods_[event.of].group].registrations.push_back(outcome(event.of, now));
      return wait_for_job(event.of, now);
    case Kind::job_done:
      ++done_;
      --claimed_by_owner_[scenario_.streams[pods_[event.of].stream].owner];
      return wait_for_job(event.of, now);
    case Kind::idle_too_long:
      return end(event.of, now);
    case Kind::node_down:
      for (const auto index : cluster_.go_down(event.of)) end(index, now, End::taken);
      return;
    case Kind::node_back:
      cluster_.come_back(event.of);
      return fill(event.of, now);
  }
}

void World::pulled(std::size_t index, Seconds now) {
  if ((now >= model_.pulls_fail_from && now < model_.pulls_fail_until) ||
      random_.share() < model_.pull_failures) {
    fail(index, now);
    move(index, PodState::pull_error, now);
    return at(now + Seconds(300), index, Kind::pulled);
  }
  move(index, PodState::unregistered, now);
  if (random_.share() < model_.silent)
    return at(now + scenario_.policy.settings.register_limit, index, Kind::gives_up);
  at(now + random_.around(model_.registration), index,
     cluster_.breaks(pods_[index].node, now) ? Kind::crashes : Kind::registered);
}

void World::wait_for_job(std::size_t index, Seconds now) {
  const auto& pod = pods_[index];
  if (model_.lifetime > Seconds(0) && now - pod.born > model_.lifetime) return end(index, now);
  // A claim is used for the owner's next job of the group without the negotiator.
  if (pod.state == PodState::claimed) {
    const auto& owner = scenario_.streams[pod.stream].owner;
    for (const auto stream : streams_of_[pod.group])
      if (idle_[stream] > 0 && !unmet_[stream] && scenario_.streams[stream].owner == owner)
        return start_job(index, stream, now);
  }
  move(index, PodState::unmatched, now);
  at(now + model_.idle_limit, index, Kind::idle_too_long);
}

void World::start_job(std::size_t index, std::size_t stream, Seconds now) {
  auto& pod = pods_[index];
  move(index, PodState::claimed, now);
  pod.had_job = true;
  pod.stream = stream;
  --idle_[stream];
  ++claimed_by_owner_[scenario_.streams[stream].owner];
  at(now + random_.exponential(scenario_.streams[stream].runtime), index, Kind::job_done);
}

void World::arrive(Seconds now) {
  for (std::size_t i = 0; i < scenario_.streams.size(); ++i) {
    const auto& stream = scenario_.streams[i];
    if (now < stream.start) continue;
    if (stream.leave > Seconds(0) && now >= stream.leave) {
      idle_[i] = 0;
      continue;
    }
    const auto until = stream.until > Seconds(0) ? std::min(now, stream.until) : now;
    const auto hours =
        std::chrono::duration<double, std::ratio<3600>>(std::max(until - stream.start, Seconds(0))).count();
    const auto total = stream.burst + static_cast<std::int64_t>(hours * stream.per_hour);
    idle_[i] += total - std::exchange(arrived_[i], total);
  }
}

// The owner who has least comes first.
std::size_t World::next_stream(std::size_t group) const {
  auto best = Cluster::k_nowhere;
  std::int64_t least = 0;
  for (const auto stream : streams_of_[group]) {
    if (idle_[stream] == 0 || unmet_[stream]) continue;
    const auto found = claimed_by_owner_.find(scenario_.streams[stream].owner);
    const auto has = found == claimed_by_owner_.end() ? 0 : found->second;
    if (best != Cluster::k_nowhere && has >= least) continue;
    best = stream;
    least = has;
  }
  return best;
}

void World::negotiate(Seconds now) {
  negotiated_ = now;
  arrive(now);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    // Of slots of equal rank a negotiator takes the same ones first each time: those of the oldest pods here.
    for (auto stream = next_stream(g); !unmatched_[g].empty() && stream != Cluster::k_nowhere;
         stream = next_stream(g))
      start_job(*unmatched_[g].begin(), stream, now);
  }
}

}  // namespace glidepod::provisioner
