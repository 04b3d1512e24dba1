#include "provisioner/service/cycle.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "lib/base/text.hpp"
#include "lib/kube/failure.hpp"
#include "provisioner/backends/pods.hpp"
#include "provisioner/decide/breaker.hpp"
#include "provisioner/decide/nodes.hpp"
#include "provisioner/demand/trust.hpp"
#include "provisioner/offline/ads.hpp"
#include "provisioner/offline/offers.hpp"
#include "provisioner/service/slots.hpp"
#include "provisioner/supply/place.hpp"

namespace glidepod::provisioner {

namespace {

constexpr int k_parallel_actions = 4;
constexpr std::size_t k_longest_refusal = 300;
// How long the last priorities count once the negotiator's ads are gone.
constexpr Seconds k_believed_after{600};
// Priorities move with usage over a day.
constexpr Seconds k_priorities_last{180};

// The API's words where it will not have such a pod, whoever asks how often; none for what may pass by
// itself.
std::optional<std::string> refusal_in(const Error& failure) {
  const auto* answer = failure.fact<kube::Failure>();
  if (!answer || (answer->status != 400 && answer->status != 403 && answer->status != 422))
    return std::nullopt;
  return one_line(answer->to_string(), k_longest_refusal);
}

PodEvent event_of(const Draining& draining) {
  const bool kills = draining.mode == Drained::Mode::kill;
  return {draining.pod, kills ? "Killed" : "Drained",
          harmless(fmt::format("an operator wants its end: {}: {}", draining.reason,
                               kills ? "its jobs are vacated, and run elsewhere"
                                     : "it takes no more jobs, and ends after its last one")),
          true};
}

// The place that a decision's pod of this number goes to.
std::string place_of_next(const Decision& decision, std::int64_t number) {
  for (const auto& in : decision.places) {
    if (number < in.submit) return in.place;
    number -= in.submit;
  }
  return {};
}

// The jobs for which the negotiator would have used pods, and which run meanwhile.
void count_begun(Observation& seen) {
  const auto limited = [](const auto& entry) {
    const auto& offers = entry.second.offers;
    return offers && offers->decides && offers->limits();
  };
  if (std::ranges::none_of(seen.demand.groups, limited)) return;
  std::map<std::string_view, const Group*> groups;
  for (const auto& pod : seen.pods) groups[pod.name] = &pod.group;
  std::map<Group, std::int64_t> begun;
  for (const auto& slot : seen.slots) {
    const auto group = groups.find(slot.pod);
    if (!slot.claimed || group == groups.end()) continue;
    const auto demand = seen.demand.groups.find(*group->second);
    if (demand == seen.demand.groups.end() || !demand->second.offers) continue;
    if (slot.claimed_at > demand->second.offers->over) ++begun[*group->second];
  }
  for (const auto& [group, claims] : begun) begun_since(seen.demand, group, claims);
}

}  // namespace

// The questions of one cycle, asked at the same time.
struct Cycle::Look {
  Observation result;
  Seen seen;
  std::vector<Slot> slots;
  TextPool texts;  // that many of them have
  std::optional<std::string> slots_failed;
  std::vector<std::string> problems;
  int missing = 4;
  std::function<void(Observation)> done;

  // Mostly those of the slot before, which is found sooner.
  void share_texts(Slot& slot) {
    const auto share = [&](auto text_of) {
      SharedText& text = text_of(slot);
      if (!slots.empty() && text_of(slots.back()) == text)
        text = text_of(slots.back());
      else
        texts.share(text);
    };
    share([](Slot& s) -> SharedText& { return s.pod; });
    share([](Slot& s) -> SharedText& { return s.owner; });
    share([](Slot& s) -> SharedText& { return s.containers; });
    for (const auto part :
         {&SlotJob::state, &SlotJob::container, &SlotJob::image, &SlotJob::digest, &SlotJob::how})
      share([part](Slot& s) -> SharedText& { return s.job.*part; });
  }
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
  sights_ = std::move(other.sights_);
  history_ = std::move(other.history_);
  policy_.drained = other.policy_.drained;
  priorities_ = std::move(other.priorities_);
  priorities_asked_ = other.priorities_asked_;
  priorities_known_ = other.priorities_known_;
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
  backend_.avoid(kept_off(avoided(history_.nodes, now)));
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

void Cycle::read_priorities(const std::shared_ptr<Look>& look) {
  if (look->result.at - priorities_asked_ < k_priorities_last) return finish_look(look);
  auto reader = std::make_shared<PrioritiesReader>();
  pool_.accounting({[reader](const condor::Ad& ad) { reader->read(ad); },
                    [](const std::string&) {},  // it is as if it were not there
                    [this, look, reader](const Result<void>& end) {
                      priorities_asked_ = look->result.at;
                      auto now = reader->result();
                      if (!end) now = {.unknown = end.error().in("accounting ads").message()};
                      if (!now.unknown) priorities_known_ = look->result.at;
                      if (now.unknown && look->result.at - priorities_known_ < k_believed_after)
                        look->problems.push_back(
                            fmt::format("{}: believed after {} s; until then the priorities of before count",
                                        *now.unknown, k_believed_after.count()));
                      else
                        priorities_ = std::move(now);
                      finish_look(look);
                    }});
}

void Cycle::read_slots(const std::shared_ptr<Look>& look) {
  const auto attribute = backend_.slot_pod_attribute();
  auto attributes = slot_attributes(attribute);
  for (auto& name : backend_.slot_place_attributes()) attributes.push_back(std::move(name));
  const auto identities = settings_pattern(htcondor_.startd_identity_regexp);
  pool_.slots(
      fmt::format("({}) && ({} =!= true)", backend_.slot_constraint(), k_offline_mark), attributes,
      {[this, look, attribute, identities](const condor::Ad& ad) {
         auto slot = read_slot(ad, attribute, identities);
         if (!slot) return;
         if (auto place = backend_.place_of_slot(ad); !place.empty()) slot->pod = in_place(place, slot->pod);
         look->share_texts(*slot);
         look->slots.push_back(*std::move(slot));
       },
       [look](const std::string& why) { look->problems.push_back(fmt::format("bad slot ad: {}", why)); },
       [this, look](const Result<void>& end) {
         if (!end) look->slots_failed = end.error().in("list of slots").message();
         look->texts = {};
         read_priorities(look);  // not beside it: each of HTCondor's tools takes 16 MiB
         finish_look(look);
       }});
}

void Cycle::finish_look(const std::shared_ptr<Look>& look) {
  if (--look->missing > 0) return;
  aside_([this, look] { digest(*look); },
         [look] {
           const auto done = std::move(look->done);
           done(std::move(look->result));
         });
}

void Cycle::digest(Look& look) {
  auto& result = look.result;
  result.capacity = std::move(look.seen.capacity);
  result.demand = backend_.fit(std::move(result.demand), result.capacity);
  result.demand.priorities = priorities_;
  // To the accountant a pod that was offered and matched is in use; and the negotiator has kept to the
  // quotas.
  if (htcondor_.demand != DemandBy::query) {
    result.demand.priorities.quota_left.clear();
    result.demand.priorities.group_of.clear();
  }
  if (look.seen.blind || look.slots_failed) {
    // The tracker must not learn from half a view: pilots would seem to have vanished.
    result.supply.blind = look.seen.blind ? look.seen.blind : look.slots_failed;
  } else {
    result.supply = supply_of(look);
    result.pods = std::move(look.seen.pods);
    result.slots = std::move(look.slots);
    count_begun(result);
  }
  auto& problems = result.supply.problems;
  for (auto* list : {&look.seen.problems, &look.problems})
    problems.insert(problems.end(), list->begin(), list->end());
}

// Nodes of the one kind and of the other, each once.
std::vector<std::string> Cycle::kept_off(std::vector<std::string> avoid) const {
  for (auto& node : drained_nodes(policy_.drained))
    if (std::ranges::find(avoid, node) == avoid.end()) avoid.push_back(std::move(node));
  return avoid;
}

Supply Cycle::supply_of(Look& look) {
  const auto& now = look.result.at;
  mark_drained(look.seen.pods, policy_.drained);
  const auto& settings = policy_.settings;
  if (policy_.places.empty())
    return tracker_.observe(look.seen.pods, look.slots, settings, backend_.image(), now);
  std::vector<std::string> names;
  std::set<std::string, std::less<>> images;
  for (const auto& place : policy_.places) {
    names.push_back(place.name);
    images.insert(place.image);
  }
  auto places =
      sights_.complete(look.seen.pods, names, look.seen.unseen, look.slots, settings.outage_shift, now);
  auto supply = tracker_.observe(look.seen.pods, look.slots, settings, images, std::move(places), now);
  for (const auto& [name, place] : supply.places)
    if (!place.unseen.empty())
      supply.problems.push_back(
          fmt::format("place {} is not seen for {} s: {}", name, place.unseen_for.count(), place.unseen));
  return supply;
}

std::string Cycle::image_of(std::string_view pod) const {
  const auto place = std::ranges::find(policy_.places, place_of(pod), &PlacePolicy::name);
  return place == policy_.places.end() ? backend_.image() : place->image;
}

Plan Cycle::decide(const Observation& seen) {
  auto plan = provisioner::decide(seen.demand, seen.supply, seen.capacity, policy_, seen.at, history_);
  history_ = plan.history;
  if (!plan.blind) plan.drainings = drainings(seen.pods, seen.supply.places, policy_.drained);
  return plan;
}

struct Cycle::Work {
  struct Action {
    Group group;
    std::string pod;
    bool creates;
    const Draining* drains = nullptr;
  };
  std::vector<Draining> drainings;
  std::deque<Action> actions;
  std::optional<SteadyTime> first_created;
  std::int64_t left_out = 0;                       // pods, since those before them took too long
  std::set<std::pair<Group, std::string>> failed;  // with the place
  int under_way = 0;
  Time now;
  Applied result;
  std::function<void(Applied)> done;
};

void Cycle::apply(const Plan& plan, Time now, std::function<void(Applied)> done) {
  auto work = std::make_shared<Work>();
  work->now = now;
  work->done = std::move(done);
  if (!may_act_()) {
    const auto call = std::move(work->done);
    return call({});
  }
  backend_.avoid(kept_off(plan.avoid));
  std::map<Group, GroupDemand> wanted;
  for (const auto& decision : plan.decisions)
    if (!decision.demand.images.empty()) wanted[decision.group] = decision.demand;
  backend_.want(wanted);
  if (!winding_up_) demand_.follow_up(now);
  // First what an operator wants and what makes room, of which there is an end: pods to make may be many.
  work->drainings = plan.drainings;
  for (const auto& draining : work->drainings) work->actions.push_back({{}, draining.pod, false, &draining});
  for (const auto& removal : plan.removals) work->actions.push_back({{}, removal.pod, false});
  // A pod of each group in turn: if time runs out, all have got some.
  bool more = true;
  for (std::int64_t number = 0; more; ++number) {
    more = false;
    for (const auto& decision : plan.decisions) {
      if (number >= decision.submit) continue;
      more = true;
      const auto name = pod_name(app_name_, decision.group, now, number);
      work->actions.push_back({decision.group, in_place(place_of_next(decision, number), name), true});
    }
  }
  next_work(work);
}

bool Cycle::out_of_time(Work& work) const {
  const auto now = clock_();
  return now - work.first_created.emplace(work.first_created.value_or(now)) >= create_within_;
}

void Cycle::next_work(const std::shared_ptr<Work>& work) {
  while (!work->actions.empty() && work->under_way < k_parallel_actions) {
    const auto action = std::move(work->actions.front());
    work->actions.pop_front();
    const std::pair key(action.group, std::string(place_of(action.pod)));
    if (winding_up_ || !may_act_() || (action.creates && work->failed.contains(key))) continue;
    if (action.creates && out_of_time(*work)) {
      ++work->left_out;
      continue;
    }
    ++work->under_way;
    const auto ended = [this, work, action, key](const Result<void>& end) {
      --work->under_way;
      if (action.creates) sights_.made(action.pod, action.group, image_of(action.pod), work->now);
      const bool tells = action.drains && action.drains->mode == Drained::Mode::drain;
      if (end) {
        ++(action.creates ? work->result.created : tells ? work->result.drained : work->result.removed);
        if (action.creates) note_refusal(history_, action.group, key.second, {}, policy_.settings, work->now);
        if (action.creates) tracker_.created(action.pod, action.group, image_of(action.pod));
      } else {
        ++(action.creates ? work->result.not_created : work->result.not_removed);
        if (action.creates) work->failed.insert(key);
        if (const auto words = refusal_in(end.error()); action.creates && words)
          note_refusal(history_, action.group, key.second, words, policy_.settings, work->now);
        const auto what = end.error()
                              .in(fmt::format("{} {}",
                                              action.creates ? "make"
                                              : tells        ? "drain"
                                                             : "remove",
                                              action.pod))
                              .message();
        work->result.problems.push_back(what);
        if (action.creates) work->result.unmade.push_back({action.group, names_quota(what), what});
      }
      next_work(work);
    };
    if (action.creates) {
      backend_.create(action.group, action.pod, ended);
    } else if (action.drains) {
      backend_.tell(event_of(*action.drains), work->now);
      backend_.drain(*action.drains, ended);
    } else {
      backend_.remove(action.pod, ended);
    }
  }
  if (!work->actions.empty() || work->under_way > 0 || !work->done) return;
  if (work->left_out > 0)
    work->result.problems.push_back(
        fmt::format("{} pods are not made, since the others took {} s: the next cycle decides anew",
                    work->left_out, create_within_.count()));
  const auto done = std::exchange(work->done, {});
  done(std::move(work->result));
}

}  // namespace glidepod::provisioner
