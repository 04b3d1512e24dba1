#include "provisioner/backends/places.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "provisioner/supply/place.hpp"

namespace glidepod::provisioner {

struct Places::Look {
  Seen seen;
  std::vector<bool> missing;
  std::function<void(Seen)> done;
};

Places::Places(Loop& loop, std::vector<Place> places, Milliseconds patience)
    : loop_(loop), places_(std::move(places)), patience_(patience), busy_(places_.size(), false) {
  std::vector<std::string> images;
  for (const auto& place : places_)
    if (std::ranges::find(images, place.policy.image) == images.end()) images.push_back(place.policy.image);
  image_ = fmt::format("{}", fmt::join(images, ", "));
}

Places::~Places() {
  for (const auto& timer : timers_) loop_.cancel(timer.second);
}

void Places::after(Milliseconds delay, std::function<void()> function) {
  const auto id = ++last_timer_;
  timers_[id] = loop_.after(delay, [this, id, function = std::move(function)] {
    timers_.erase(id);
    function();
  });
}

Places::Place* Places::find(std::string_view name) {
  const auto found = std::ranges::find_if(
      places_, [place = place_of(name)](const Place& other) { return other.policy.name == place; });
  return found == places_.end() ? nullptr : &*found;
}

void Places::look(Time now, std::function<void(Seen)> done) {
  auto look = std::make_shared<Look>();
  look->missing.assign(places_.size(), false);
  look->done = std::move(done);
  // One that has not answered the last cycle yet is not asked again, nor waited for.
  std::vector<std::size_t> asked;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (busy_[i])
      look->seen.unseen[places_[i].policy.name] = "no answer yet";
    else
      asked.push_back(i);
  }
  for (const auto i : asked) look->missing[i] = busy_[i] = true;
  for (const auto i : asked)
    places_[i].backend->look(now, [this, look, i](Seen seen) {
      busy_[i] = false;
      answered(look, i, std::move(seen));
    });
  if (!look->done) return;
  after(asked.empty() ? Milliseconds(0) : patience_, [this, look] {
    if (look->done) finish(look);
  });
}

void Places::answered(const std::shared_ptr<Look>& look, std::size_t i, Seen seen) {
  if (!look->done) return;  // too late
  const auto& place = places_[i].policy.name;
  look->missing[i] = false;
  auto& all = look->seen;
  if (seen.blind) {
    all.unseen[place] = *seen.blind;
  } else {
    for (auto& pod : seen.pods) {
      pod.name = in_place(place, pod.name);
      if (!pod.node.empty()) pod.node = in_place(place, pod.node);
      pod.image = in_place(place, pod.image);
      all.pods.push_back(std::move(pod));
    }
    all.capacity.places[place] = std::move(seen.capacity);
  }
  for (const auto& problem : seen.problems) all.problems.push_back(fmt::format("{}: {}", place, problem));
  if (std::ranges::none_of(look->missing, [](bool missing) { return missing; })) finish(look);
}

void Places::finish(const std::shared_ptr<Look>& look) {
  auto& seen = look->seen;
  for (std::size_t i = 0; i < places_.size(); ++i)
    if (look->missing[i])
      seen.unseen[places_[i].policy.name] =
          fmt::format("no answer in {} s", std::chrono::duration_cast<Seconds>(patience_).count());
  if (seen.unseen.size() == places_.size()) {
    std::vector<std::string> why;
    for (const auto& [place, words] : seen.unseen) why.push_back(fmt::format("{}: {}", place, words));
    seen.blind = fmt::format("{}", fmt::join(why, "; "));
  }
  const auto done = std::exchange(look->done, {});
  done(std::move(seen));
}

Demand Places::fit(Demand demand, Capacity& capacity) const {
  for (const auto& place : places_)
    demand = place.backend->fit(std::move(demand), capacity.places[place.policy.name]);
  return demand;
}

void Places::want(const std::map<Group, GroupDemand>& groups) {
  for (const auto& place : places_) place.backend->want(groups);
}

void Places::avoid(const std::vector<std::string>& nodes) {
  for (const auto& place : places_) {
    std::vector<std::string> own;
    for (const auto& node : nodes)
      if (place_of(node) == place.policy.name) own.emplace_back(without_place(node));
    place.backend->avoid(own);
  }
}

void Places::create(const Group& group, const std::string& name, std::function<void(Result<void>)> done) {
  if (auto* place = find(name))
    return place->backend->create(group, std::string(without_place(name)), std::move(done));
  after(Milliseconds(0), [done = std::move(done), name] { done(error("{}: there is no such place", name)); });
}

void Places::remove(const std::string& name, std::function<void(Result<void>)> done) {
  if (auto* place = find(name))
    return place->backend->remove(std::string(without_place(name)), std::move(done));
  after(Milliseconds(0), [done = std::move(done), name] { done(error("{}: there is no such place", name)); });
}

void Places::drain(const Draining& draining, std::function<void(Result<void>)> done) {
  auto own = draining;
  own.pod = without_place(draining.pod);
  if (auto* place = find(draining.pod)) return place->backend->drain(own, std::move(done));
  after(Milliseconds(0),
        [done = std::move(done), name = draining.pod] { done(error("{}: there is no such place", name)); });
}

void Places::tell(const PodEvent& event, Time now) {
  auto own = event;
  own.pod = without_place(event.pod);
  if (auto* place = find(event.pod)) place->backend->tell(own, now);
}

void Places::wind_up() {
  for (const auto& place : places_) place.backend->wind_up();
}

std::vector<PlacePolicy> Places::places() const {
  std::vector<PlacePolicy> result;
  for (const auto& place : places_) {
    result.push_back(place.policy);
    result.back().image = in_place(place.policy.name, place.policy.image);
  }
  return result;
}

std::string Places::slot_constraint() const {
  std::vector<std::string> parts;
  for (const auto& place : places_) parts.push_back("(" + place.backend->slot_constraint() + ")");
  return fmt::format("{}", fmt::join(parts, " || "));
}

std::string Places::slot_pod_attribute() const {
  return places_.front().backend->slot_pod_attribute();
}

std::string Places::place_of_slot(const condor::Ad& slot) const {
  const auto name_space = slot.text("K8SNamespace"), domain = slot.text("K8SDomain");
  for (const auto& place : places_)
    if (place.name_space == name_space && place.domain == domain) return place.policy.name;
  return {};
}

std::vector<JobClause> Places::jobs_taken() const {
  auto jobs = places_.front().backend->jobs_taken();
  const auto of_time = [](std::vector<JobClause>& clauses) {
    return std::ranges::find(clauses, JobRule::time, &JobClause::rule);
  };
  // A job that one of them has time for counts.
  for (const auto& place : places_) {
    const auto time = of_time(jobs);
    if (time == jobs.end()) break;
    auto others = place.backend->jobs_taken();
    if (const auto other = of_time(others); other == others.end())
      jobs.erase(time);
    else if (other->limit > time->limit)
      *time = *other;
  }
  return jobs;
}

// A job that one of them may have a pilot for counts.
PilotAttributes Places::pilot_attributes() const {
  PilotAttributes result{.known = true, .more = {}};
  for (const auto& place : places_) {
    const auto own = place.backend->pilot_attributes();
    result.known = result.known && own.known;
    result.more.insert(result.more.end(), own.more.begin(), own.more.end());
  }
  return result.known ? result : PilotAttributes{};
}

}  // namespace glidepod::provisioner
