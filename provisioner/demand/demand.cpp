#include "provisioner/demand/demand.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "lib/base/text.hpp"
#include "lib/condor/job_ad.hpp"
#include "provisioner/demand/name_space.hpp"
#include "provisioner/demand/trust.hpp"

namespace glidepod::provisioner {

namespace {

using condor::Ad;
using condor::Value;

constexpr std::size_t k_most_bad_ads_told = 5, k_longest_reason = 300;
constexpr std::chrono::hours k_schedd_missed{1};
// condor_q gives up in silence where an answer has not begun after 20 s: no answer, not an empty one.
constexpr std::chrono::seconds k_silence{18};
constexpr int k_most_rounds = 4;             // of requests that depend on the slot
constexpr std::size_t k_most_elements = 16;  // of what a job lists, such as kinds of GPUs

// A slot that a request is evaluated with, and whether that made a difference.
struct PodSlot {
  Ad ad;
  bool used = false;
};

// The slot of a pod of this group, as a negotiator finds it before its first job.
PodSlot slot_of(const Group& group) {
  PodSlot slot;
  const std::pair<std::string_view, std::int64_t> sizes[] = {
      {"Cpus", group.cpus}, {"Memory", group.memory_mb}, {"Disk", group.disk_kb}, {"GPUs", group.gpus}};
  for (const auto& [name, size] : sizes)
    for (const auto* prefix : {"", "Total", "TotalSlot"})
      if (size > 0) slot.ad.set(fmt::format("{}{}", prefix, name), Value::of(size));
  return slot;
}

// A request as a whole number, rounded up; none where it is not set. Nothing sensible is above 10^12.
Result<std::optional<std::int64_t>> request(const Ad& ad, std::string_view name, PodSlot& slot) {
  const auto value = ad.evaluate(name, slot.ad, slot.used);
  if (value.is(Value::Type::undefined)) return std::optional<std::int64_t>();
  double number = 0;
  if (value.is(Value::Type::integer))
    number = static_cast<double>(value.integer);
  else if (value.is(Value::Type::real))
    number = std::ceil(value.real);
  else
    return error("{} is {}{}{}", name, one_line(value.to_string(), 100),
                 value.is(Value::Type::error) ? ": " : "", value.is(Value::Type::error) ? value.text : "");
  if (!(number >= 0 && number <= 1e12)) return error("{} is {}", name, value.to_string());
  return std::optional(static_cast<std::int64_t>(number));
}

// What a Kubernetes label value may be; anything else would be refused with the whole pod.
bool is_label_value(std::string_view text) {
  const auto inner = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
  };
  const auto outer = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  return text.size() <= 63 && !text.empty() && outer(text.front()) && outer(text.back()) &&
         std::all_of(text.begin(), text.end(), inner);
}

// The elements in order, without doubles.
Result<std::string> canonical(const std::set<std::string>& elements, std::string_view attribute) {
  if (elements.size() > k_most_elements)
    return error("{} has more than {} elements", attribute, k_most_elements);
  return fmt::format("{}", fmt::join(elements, ","));
}

Result<std::string> gpu_types(const std::string& text) {
  std::set<std::string> types;
  for (const auto& part : split(text, ',')) {
    const auto type = trim(part);
    if (type.empty()) continue;
    if (!is_label_value(type)) return error("RequestGPUTypes has '{}'", one_line(type, 100));
    types.emplace(type);
  }
  return canonical(types, "RequestGPUTypes");
}

// "key:value,..." whose keys are allowed.
template <typename IsValue>
Result<std::string> allowed_pairs(const std::string& text, std::string_view attribute, const List& allowed,
                                  const IsValue& is_value) {
  std::set<std::string> pairs;
  for (const auto& part : split(text, ',')) {
    const auto pair = std::string(trim(part));
    const auto colon = pair.find(':');
    if (std::find(allowed.begin(), allowed.end(), pair.substr(0, colon)) == allowed.end()) continue;
    if (colon == std::string::npos || !is_value(std::string_view(pair).substr(colon + 1)))
      return error("{} has '{}'", attribute, one_line(pair, 100));
    pairs.insert(pair);
  }
  return canonical(pairs, attribute);
}

// Where a volume may be mounted: at one of these folders or below. A job that could name any would put its
// own programs into the pilot, in the place of /bin.
bool is_mount_path(std::string_view path, const List& below) {
  const auto holds = [path](std::string_view folder) {
    return path == folder || (path.starts_with(folder) && path[folder.size()] == '/');
  };
  if (std::ranges::none_of(below, holds)) return false;
  const auto harmless = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("/._-").find(c) != std::string_view::npos;
  };
  return path.size() > 1 && path.size() <= 200 && path.front() == '/' &&
         path.find("..") == std::string_view::npos && path.find("//") == std::string_view::npos &&
         std::all_of(path.begin(), path.end(), harmless);
}

const std::vector<std::string> k_group_attributes = {"RequestCpus",        "RequestMemory", "RequestDisk",
                                                     "RequestDiskVolumes", "RequestGPUs",   "RequestGPUTypes",
                                                     "RequestLabels",      "Owner"};

}  // namespace

// A job whose pattern for namespaces is refused comes with the answer, to be told. What only HTCondor can
// evaluate (strcat()) counts, as it does for START, unless a schedd has left it out.
Result<Group> CondorDemand::group_in(const Ad& ad) const {
  const auto pattern = ad.evaluate("RequestK8SNamespace");
  const bool good = pattern.is(Value::Type::string)
                        ? is_namespace_pattern(pattern.text)
                        : pattern.is(Value::Type::error) || pattern.is(Value::Type::undefined);
  if (patterns_ && !good)
    return error(
        "RequestK8SNamespace of {} is refused: '{}' is no pattern of a-z, 0-9, '-', '.', '|' and at "
        "most three of '*', '+', '?'",
        one_line(ad.text("Owner"), 100), one_line(pattern.to_string(), 100));
  return group_of(ad, policy_);
}

namespace {
Result<Group> group_in_slot(const Ad& ad, const PolicySettings& policy, PodSlot& slot) {
  Group group;
  const auto cpus = TRY(request(ad, "RequestCpus", slot));
  const auto memory = TRY(request(ad, "RequestMemory", slot));
  const auto disk = TRY(request(ad, "RequestDisk", slot));
  const auto gpus = TRY(request(ad, "RequestGPUs", slot));
  // As PRP: HTCondor's own defaults for these are too low to mean anything.
  if (memory && *memory >= group.memory_mb) group.memory_mb = *memory;
  if (disk && *disk >= group.disk_kb) group.disk_kb = *disk;
  group.cpus = to_bucket(std::max<std::int64_t>(cpus.value_or(group.cpus), 1), policy.cpu_buckets);
  group.memory_mb = to_bucket(group.memory_mb, policy.memory_buckets);
  group.disk_kb = to_bucket(group.disk_kb, policy.disk_buckets);
  group.gpus = gpus.value_or(0);
  if (group.gpus > 0) group.gpu_types = TRY(gpu_types(ad.text("RequestGPUTypes")));
  group.disk_volumes =
      TRY(allowed_pairs(ad.text("RequestDiskVolumes"), "RequestDiskVolumes", policy.job_volumes,
                        [&policy](auto path) { return is_mount_path(path, policy.job_volume_folders); }));
  group.labels =
      TRY(allowed_pairs(ad.text("RequestLabels"), "RequestLabels", policy.job_labels, is_label_value));
  return group;
}
}  // namespace

// A request may depend on the slot (`ifThenElse(Cpus > 8, ...)`), and the slot of a pod that is yet to be
// made is of the size that the job asks for. So the job is asked again in such a slot, until that changes
// nothing.
Result<Group> group_of(const Ad& ad, const PolicySettings& policy) {
  auto slot = slot_of(Group{});
  auto group = TRY(group_in_slot(ad, policy, slot));
  for (int round = 0; slot.used && round < k_most_rounds; ++round) {
    slot = slot_of(group);
    auto next = TRY(group_in_slot(ad, policy, slot));
    if (next == group) break;
    group = std::move(next);
  }
  return group;
}

Resources request_of(const Ad& ad, const Group& group) {
  auto slot = slot_of(group);
  const auto asked = [&](std::string_view name, std::int64_t of_group) {
    const auto said = request(ad, name, slot);
    return said ? said->value_or(of_group) : of_group;
  };
  return of_job(asked("RequestCpus", group.cpus), asked("RequestMemory", group.memory_mb),
                asked("RequestDisk", group.disk_kb), group.gpus);
}

std::vector<QueryPart> query_parts(const HtcondorSettings& settings, const std::string& name_space,
                                   CondorDemand::Namespace matching, const std::string& taken) {
  using From = QueryPart::From;
  // Universe 5 is vanilla, of which container and docker are kinds; local, scheduler and grid jobs need no
  // pilot.
  std::vector<QueryPart> parts = {{From::status, "JobStatus == 1"}, {From::universe, "JobUniverse == 5"}};
  // PRP takes the job's value as a pattern, so ".*" is served by every provisioner; here it is a name, unless
  // the site wants it.
  const auto names = settings.force_namespace_matching;
  if (matching == CondorDemand::Namespace::matched && names != NamespaceMatching::no)
    parts.push_back(
        {From::name_space, asks_for_namespace(name_space, names), asks_or_refused(name_space, names)});
  if (!taken.empty()) parts.push_back({From::pilots, taken});
  const std::string more(trim(settings.additional_requirements));
  if (!more.empty()) parts.push_back({From::settings, more});
  return parts;
}

Result<std::pair<std::string, std::vector<std::string>>> job_query(const HtcondorSettings& settings,
                                                                   const std::string& name_space,
                                                                   CondorDemand::Namespace matching,
                                                                   const std::string& taken) {
  std::string constraint;
  std::vector<std::string> attributes = {"JobStatus", "JobUniverse"};
  attributes.insert(attributes.end(), k_group_attributes.begin(), k_group_attributes.end());
  const auto add = [&attributes](const std::string& name) {
    const auto same = [&name](const std::string& other) {
      return strcasecmp(name.c_str(), other.c_str()) == 0;
    };
    if (std::none_of(attributes.begin(), attributes.end(), same)) attributes.push_back(name);
  };
  for (const auto& part : query_parts(settings, name_space, matching, taken)) {
    const auto& expression = part.asked.empty() ? part.expression : part.asked;
    const auto names = condor::referenced_attributes(expression);
    if (!names) return names.error().in("[htcondor] additional_requirements");
    for (const auto& name : names.value()) add(name);
    constraint += fmt::format("{}({})", constraint.empty() ? "" : " && ", expression);
  }
  return std::pair(std::move(constraint), std::move(attributes));
}

CondorDemand::CondorDemand(condor::CommandRunner& runner, HtcondorSettings settings, PolicySettings policy,
                           const std::string& name_space, Namespace matching, const std::string& taken)
    : settings_(std::move(settings)),
      policy_(std::move(policy)),
      pool_(runner, settings_.pool, std::chrono::duration_cast<Milliseconds>(settings_.schedd_time_limit)),
      patterns_(matching == Namespace::matched &&
                settings_.force_namespace_matching == NamespaceMatching::pattern),
      query_(job_query(settings_, name_space, matching, taken)) {}

void CondorDemand::set_pilots(PilotAttributes pilots) {
  pilots_ = std::move(pilots);
  // An access point groups jobs by them, and adds what of the job they refer to.
  if (!pilots_.known || !query_) return;
  auto& attributes = query_.value().second;
  if (std::ranges::find(attributes, "Requirements") == attributes.end())
    attributes.emplace_back("Requirements");
}

namespace {

void add_unmet(UnmetDemands& all, const std::string& clause, const UnmetDemand& more) {
  // Beside those that are told there is room for the others together.
  const auto told = all.size() - (all.contains("") ? 1 : 0);
  auto& unmet = all[told < k_most_unmet || all.contains(clause) ? clause : std::string()];
  if (unmet.why.empty()) unmet.why = more.why;
  unmet.idle += more.idle;
  for (const auto& [owner, idle] : more.owners) unmet.owners[owner] += idle;
}

}  // namespace

// What one schedd has answered.
struct CondorDemand::Groups {
  std::map<Group, GroupDemand> demand;
  UnmetDemands unmet;
  std::map<Group, ImageTally> images;
  explicit Groups(AnswerBudget::Clock processor) : budget(std::move(processor)) {}
  AnswerBudget budget;
  SteadyTime asked;
  bool silent = true;
  bool cut_short = false;             // what there was for all of its ads is spent
  std::set<std::string> over_budget;  // owners
};

struct CondorDemand::Fetch {
  Demand demand;
  std::map<Group, ImageTally> images;
  std::vector<std::string> schedds;                // still to ask
  std::map<std::string, std::int64_t> idle_there;  // by their ads
  std::int64_t under_way = 0;
  std::int64_t cut_short = 0;  // of the failed schedds: a part of their answer counts
  std::string last_failure;
  std::function<void(Demand)> done;

  void bad_ad(std::string_view where, std::string_view why) {
    ++demand.bad_ads;
    if (static_cast<std::size_t>(demand.bad_ads) <= k_most_bad_ads_told)
      demand.problems.push_back(fmt::format("{}: bad ad: {}", where, one_line(why, k_longest_reason)));
  }
  void finish() {
    if (static_cast<std::size_t>(demand.bad_ads) > k_most_bad_ads_told)
      demand.problems.push_back(fmt::format("{} bad ads in all", demand.bad_ads));
    if (!demand.blind && demand.schedds_asked > 0 &&
        demand.schedds_failed - cut_short == demand.schedds_asked)
      demand.blind = fmt::format("no schedd answered: {}", last_failure);
    for (const auto& [group, tally] : images) demand.groups[group].images = tally.most_wanted();
    const auto call = std::move(done);
    call(std::move(demand));
  }
};

void CondorDemand::fetch(std::function<void(Demand)> done) {
  auto fetch = std::make_shared<Fetch>();
  fetch->done = std::move(done);
  const TrustedSchedds trusted(settings_);
  pool_.schedds({[this, fetch, trusted](const Ad& ad) {
                   const auto name = ad.text("Name"), identity = ad.text("AuthenticatedIdentity");
                   if (name.empty() || identity.empty())
                     return fetch->bad_ad("collector", "a schedd without a name or identity");
                   if (name.size() > k_longest_name)
                     return fetch->bad_ad("collector",
                                          fmt::format("a schedd's name is longer than {} characters: '{}...'",
                                                      k_longest_name, one_line(name.substr(0, 40))));
                   if (!trusted.hold(name, identity)) return;
                   fetch->schedds.push_back(name);
                   if (const auto idle = ad.evaluate("TotalIdleJobs"); idle.is(Value::Type::integer))
                     fetch->idle_there[name] = idle.integer;
                   seen_[name] = {identity, clock_()};
                 },
                 [fetch](const std::string& why) { fetch->bad_ad("collector", why); },
                 [this, fetch](const Result<void>& end) {
                   if (!end || !query_) {
                     fetch->demand.blind =
                         !end ? end.error().in("list of schedds").message() : query_.error().message();
                     return fetch->finish();
                   }
                   // Sorted, so that every cycle has the same order; schedds are asked from the back.
                   std::sort(fetch->schedds.begin(), fetch->schedds.end(), std::greater<>());
                   fetch->schedds.erase(std::unique(fetch->schedds.begin(), fetch->schedds.end()),
                                        fetch->schedds.end());
                   fetch->demand.schedds_asked = static_cast<std::int64_t>(fetch->schedds.size());
                   tell_vanished(*fetch);
                   ask_next(fetch);
                 }});
}

// A schedd that is not there does not say that it has no jobs: the collector may have been started again, or
// the schedd be so busy that it does not tell it of itself.
void CondorDemand::tell_vanished(Fetch& fetch) {
  const auto now = clock_();
  std::erase_if(seen_, [&](const auto& entry) { return now - entry.second.at > k_schedd_missed; });
  for (const auto& [name, sight] : seen_) {
    if (std::ranges::find(fetch.schedds, name) != fetch.schedds.end()) continue;
    ++fetch.demand.schedds_asked;
    ++fetch.demand.schedds_failed;
    ++fetch.demand.schedds_vanished;
    const auto ago = std::chrono::duration_cast<Seconds>(now - sight.at);
    fetch.last_failure =
        fmt::format("{}: not in the collector any more, last seen {} s ago", name, ago.count());
    fetch.demand.problems.push_back(fetch.last_failure);
    fetch.demand.silent[name] = fetch.last_failure;
  }
}

void CondorDemand::inherit(const CondorDemand& other) {
  const TrustedSchedds trusted(settings_);
  for (const auto& [name, sight] : other.seen_)
    if (trusted.hold(name, sight.identity)) seen_[name] = sight;
}

void CondorDemand::ask_next(const std::shared_ptr<Fetch>& fetch) {
  if (fetch->schedds.empty() && fetch->under_way == 0) return fetch->finish();
  while (!fetch->schedds.empty() && fetch->under_way < settings_.parallel_queries) {
    const auto schedd = std::move(fetch->schedds.back());
    fetch->schedds.pop_back();
    ++fetch->under_way;
    ask_schedd(fetch, schedd);
  }
}

// An owner's ads cost so much and no more.
void CondorDemand::within_budget(Fetch& fetch, Groups& groups, const std::string& schedd, const Ad& ad,
                                 const std::function<void(const std::string& owner)>& read) {
  const auto owner = ad.text("Owner");
  if (owner.size() > k_longest_name)
    return fetch.bad_ad(schedd, fmt::format("an Owner is longer than {} characters", k_longest_name));
  const auto spent = groups.budget.read(owner, [&] { read(owner); });
  if (spent == AnswerBudget::Spent::no) return;
  ++fetch.demand.bad_ads;
  if (spent == AnswerBudget::Spent::by_all) {
    groups.cut_short = true;
    return;
  }
  if (groups.over_budget.size() >= k_most_bad_ads_told || !groups.over_budget.insert(owner).second) return;
  fetch.demand.problems.push_back(fmt::format(
      "{}: the ads of {} took too much processor time: its others are not read", schedd, one_line(owner)));
}

void CondorDemand::count(Fetch& fetch, Groups& groups, const std::string& schedd, const Ad& ad,
                         const std::string& owner) const {
  const auto count = ad.evaluate("JobCount");
  const auto group = group_in(ad);
  if (!group || !count.is(Value::Type::integer) || count.integer < 0)
    return fetch.bad_ad(schedd, group ? "no JobCount" : group.error().message());
  if (const auto unmet = unmet_by_pilots(ad, group.value(), pilots_))
    return add_unmet(groups.unmet, one_line(unmet->clause, k_longest_reason),
                     {one_line(unmet->why, k_longest_reason),
                      count.integer,
                      {{owner.empty() ? "unknown" : owner, count.integer}}});
  auto& demand = groups.demand[group.value()];
  demand.idle += count.integer;
  const auto asked = request_of(ad, group.value());
  demand.largest = demand.largest.value_or(asked).widened_to(asked);
  demand.owners[owner.empty() ? "unknown" : owner] += count.integer;
  if (const auto image = image_of(ad); !image.empty())
    groups.images[group.value()].add(owner, image, count.integer);
}

void CondorDemand::ask_schedd(const std::shared_ptr<Fetch>& fetch, const std::string& schedd) {
  // Counted apart until the answer is whole: half an answer is no answer.
  auto groups = std::make_shared<Groups>(processor_);
  groups->asked = clock_();
  const auto& [constraint, attributes] = query_.value();
  pool_.job_groups(
      schedd, constraint, attributes,
      {[this, fetch, groups, schedd](const Ad& ad) {
         groups->silent = false;
         within_budget(*fetch, *groups, schedd, ad,
                       [&](const std::string& owner) { count(*fetch, *groups, schedd, ad, owner); });
       },
       [fetch, schedd](const std::string& why) { fetch->bad_ad(schedd, why); },
       [this, fetch, groups, schedd](const Result<void>& end) {
         const auto took = std::chrono::duration_cast<Seconds>(clock_() - groups->asked);
         if (end && groups->silent && took >= k_silence)
           return end_schedd(fetch, schedd, *groups,
                             error("condor_q: the schedd did not answer for {} seconds (condor_q gives up "
                                   "after 20)",
                                   took.count()));
         if (end && settings_.lookahead > 0) return look_ahead(fetch, schedd, groups);
         end_schedd(fetch, schedd, *groups, end);
       }});
}

// Jobs to come are seen through the idle ones of their cluster, by a second question of its own:
// naming the cluster in the first would make every cluster a group.
void CondorDemand::look_ahead(const std::shared_ptr<Fetch>& fetch, const std::string& schedd,
                              const std::shared_ptr<Groups>& groups) {
  auto [constraint, attributes] = query_.value();
  constraint += " && (JobMaterializeNextProcId =!= undefined)";
  attributes.insert(attributes.end(), {"ClusterId", "TotalSubmitProcs", "JobMaterializeNextProcId"});
  auto seen = std::make_shared<std::set<std::int64_t>>();
  pool_.job_groups(
      schedd, constraint, attributes,
      {[this, fetch, groups, seen, schedd](const Ad& ad) {
         within_budget(*fetch, *groups, schedd, ad, [&](const std::string&) {
           const auto cluster = ad.evaluate("ClusterId"), total = ad.evaluate("TotalSubmitProcs"),
                      next = ad.evaluate("JobMaterializeNextProcId");
           const auto group = group_in(ad);
           for (const auto* value : {&cluster, &total, &next})
             if (!value->is(Value::Type::integer)) return;
           if (!group || unmet_by_pilots(ad, group.value(), pilots_) || !seen->insert(cluster.integer).second)
             return;
           groups->demand[group.value()].unmaterialized +=
               std::clamp<std::int64_t>(total.integer - next.integer, 0, settings_.lookahead);
         });
       },
       [](const std::string&) {},  // the first question has told it
       [this, fetch, groups, schedd](const Result<void>& end) {
         if (!end) fetch->demand.problems.push_back(end.error().in(schedd + ": lookahead").message());
         end_schedd(fetch, schedd, *groups, {});
       }});
}

void CondorDemand::end_schedd(const std::shared_ptr<Fetch>& fetch, const std::string& schedd,
                              const Groups& groups, const Result<void>& end) {
  --fetch->under_way;
  if (end) {
    for (const auto& [group, tally] : groups.images) fetch->images[group].add(tally);
    for (const auto& [clause, unmet] : groups.unmet) add_unmet(fetch->demand.unmet, clause, unmet);
    for (const auto& [group, demand] : groups.demand) {
      auto& sum = fetch->demand.groups[group];
      sum.idle += demand.idle;
      sum.unmaterialized += demand.unmaterialized;
      if (demand.largest) sum.largest = sum.largest.value_or(*demand.largest).widened_to(*demand.largest);
      for (const auto& [owner, idle] : demand.owners) sum.owners[owner] += idle;
    }
    // What was read is true, but nobody's pods may be taken back for what was not.
    if (groups.cut_short) {
      ++fetch->cut_short;
      ++fetch->demand.schedds_failed;
      fetch->last_failure = fmt::format(
          "{}: its ads took too much processor time: the others are not read, and nothing is taken back",
          schedd);
      fetch->demand.problems.push_back(fetch->last_failure);
      fetch->demand.silent[schedd] = fetch->last_failure;
    }
  } else {
    ++fetch->demand.schedds_failed;
    fetch->last_failure = end.error().in(schedd).message();
    // Of any kind and owner, so that no pods can be made by it; but nobody takes the queue for an empty one.
    if (const auto idle = fetch->idle_there.find(schedd); idle != fetch->idle_there.end() && idle->second > 0)
      fetch->last_failure += fmt::format("; its ad in the collector counts {} idle jobs", idle->second);
    fetch->demand.problems.push_back(fetch->last_failure);
    fetch->demand.silent[schedd] = fetch->last_failure;
  }
  ask_next(fetch);
}

}  // namespace glidepod::provisioner
