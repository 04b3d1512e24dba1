#include "provisioner/service/cycle.hpp"

#include <optional>
#include <regex>
#include <set>

#include "provisioner/backends/pods.hpp"
#include "provisioner/decide/nodes.hpp"
#include "provisioner/service/slots.hpp"

namespace glidepod::provisioner {

namespace {

constexpr int k_parallel_actions = 4;

}  // namespace

// The three questions of one cycle, asked at the same time.
struct Cycle::Look {
  Observation result;
  Seen seen;
  std::vector<Slot> slots;
  std::optional<std::string> slots_failed;
  std::vector<std::string> problems;
  int missing = 3;
  std::function<void(Observation)> done;
};

Cycle::Cycle(DemandSource& demand, condor::CommandRunner& runner, Backend& backend, HtcondorSettings htcondor,
             std::string app_name, Policy policy)
    : demand_(demand),
      pool_(runner, htcondor.pool, std::chrono::duration_cast<Milliseconds>(htcondor.schedd_time_limit)),
      backend_(backend),
      htcondor_(std::move(htcondor)),
      app_name_(std::move(app_name)),
      policy_(std::move(policy)) {}

void Cycle::inherit(Cycle& other) {
  tracker_ = std::move(other.tracker_);
  history_ = std::move(other.history_);
}

nlohmann::json Cycle::memory(Time now) const {
  return memory_json(tracker_, history_, now);
}

Result<void> Cycle::recall(const nlohmann::json& memory, Time now) {
  auto recalled = TRY(read_memory(memory, policy_.settings, now));
  tracker_ = Tracker(std::move(recalled.fates));
  history_ = std::move(recalled.history);
  return {};
}

void Cycle::observe(Time now, std::function<void(Observation)> done) {
  auto look = std::make_shared<Look>();
  look->result.at = now;
  look->done = std::move(done);
  backend_.avoid(avoided(history_.nodes, now));
  demand_.fetch([this, look](Demand demand) {
    look->result.demand = std::move(demand);
    finish_look(look);
  });
  backend_.look(now, [this, look](Seen seen) {
    look->seen = std::move(seen);
    finish_look(look);
  });
  read_slots(look);
}

void Cycle::read_slots(const std::shared_ptr<Look>& look) {
  const auto attribute = backend_.slot_pod_attribute();
  const std::regex identities(htcondor_.startd_identity_regexp);
  pool_.slots(
      backend_.slot_constraint(), slot_attributes(attribute),
      {[look, attribute, identities](const condor::Ad& ad) {
         if (auto slot = read_slot(ad, attribute, identities)) look->slots.push_back(*std::move(slot));
       },
       [look](const std::string& why) { look->problems.push_back(fmt::format("bad slot ad: {}", why)); },
       [this, look](const Result<void>& end) {
         if (!end) look->slots_failed = end.error().in("list of slots").message();
         finish_look(look);
       }});
}

void Cycle::finish_look(const std::shared_ptr<Look>& look) {
  if (--look->missing > 0) return;
  auto& result = look->result;
  result.capacity = std::move(look->seen.capacity);
  result.demand = backend_.fit(std::move(result.demand), result.capacity);
  if (look->seen.blind || look->slots_failed) {
    // The tracker must not learn from half a view: pilots would seem to have vanished.
    result.supply.blind = look->seen.blind ? look->seen.blind : look->slots_failed;
  } else {
    result.supply =
        tracker_.observe(look->seen.pods, look->slots, policy_.settings, backend_.image(), result.at);
    result.pods = std::move(look->seen.pods);
    result.slots = std::move(look->slots);
  }
  auto& problems = result.supply.problems;
  for (auto* list : {&look->seen.problems, &look->problems})
    problems.insert(problems.end(), list->begin(), list->end());
  const auto done = std::move(look->done);
  done(std::move(result));
}

Plan Cycle::decide(const Observation& seen) {
  auto plan = provisioner::decide(seen.demand, seen.supply, seen.capacity, policy_, seen.at, history_);
  history_ = plan.history;
  return plan;
}

struct Cycle::Work {
  struct Action {
    Group group;
    std::string pod;
    bool creates;
  };
  std::deque<Action> actions;
  std::set<Group> failed;
  int under_way = 0;
  Applied result;
  std::function<void(Applied)> done;
};

void Cycle::apply(const Plan& plan, Time now, std::function<void(Applied)> done) {
  auto work = std::make_shared<Work>();
  work->done = std::move(done);
  backend_.avoid(plan.avoid);
  std::map<Group, GroupDemand> wanted;
  for (const auto& decision : plan.decisions)
    if (!decision.demand.images.empty()) wanted[decision.group] = decision.demand;
  backend_.want(wanted);
  // A pod of each group in turn: if time runs out, all have got some.
  bool more = true;
  for (std::int64_t number = 0; more; ++number) {
    more = false;
    for (const auto& decision : plan.decisions) {
      if (number >= decision.submit) continue;
      more = true;
      work->actions.push_back({decision.group, pod_name(app_name_, decision.group, now, number), true});
    }
  }
  for (const auto& removal : plan.removals) work->actions.push_back({{}, removal.pod, false});
  next_work(work);
}

void Cycle::next_work(const std::shared_ptr<Work>& work) {
  while (!work->actions.empty() && work->under_way < k_parallel_actions) {
    const auto action = std::move(work->actions.front());
    work->actions.pop_front();
    if (winding_up_ || (action.creates && work->failed.contains(action.group))) continue;
    ++work->under_way;
    const auto ended = [this, work, action](const Result<void>& end) {
      --work->under_way;
      if (end) {
        ++(action.creates ? work->result.created : work->result.removed);
        if (action.creates) tracker_.created(action.pod, action.group, backend_.image());
      } else {
        ++(action.creates ? work->result.not_created : work->result.not_removed);
        if (action.creates) work->failed.insert(action.group);
        work->result.problems.push_back(
            end.error().in(fmt::format("{} {}", action.creates ? "make" : "remove", action.pod)).message());
      }
      next_work(work);
    };
    if (action.creates)
      backend_.create(action.group, action.pod, ended);
    else
      backend_.remove(action.pod, ended);
  }
  if (!work->actions.empty() || work->under_way > 0 || !work->done) return;
  const auto done = std::exchange(work->done, {});
  done(std::move(work->result));
}

}  // namespace glidepod::provisioner
