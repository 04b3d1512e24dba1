#include "provisioner/service/drain_command.hpp"

#include <algorithm>
#include <map>

#include "lib/base/json.hpp"
#include "lib/base/text.hpp"
#include "lib/base/time.hpp"
#include "provisioner/backends/pods.hpp"
#include "provisioner/service/drain_list.hpp"
#include "provisioner/service/parts.hpp"
#include "provisioner/supply/place.hpp"

namespace glidepod::provisioner {

namespace {

using Mode = Drained::Mode;
constexpr std::size_t k_pods_shown = 200;
constexpr int k_lease_attempts = 5;
constexpr Milliseconds k_lease_write_limit{15'000};

std::string entry_title(const Drained& entry) {
  return fmt::format("{} {}", to_string(entry.kind), harmless(entry.name));
}

std::string list_table(const DrainList& list) {
  if (list.empty()) return "nothing is drained\n";
  std::vector<std::vector<std::string>> rows = {{"KIND", "NAME", "MODE", "SINCE", "REASON"}};
  for (const auto& entry : list)
    rows.push_back({std::string(to_string(entry.kind)), harmless(entry.name),
                    std::string(to_string(entry.mode)), time_text(entry.since), harmless(entry.reason)});
  return columns(rows);
}

// Those that are concerned, and how many jobs run in each.
struct Concerned {
  std::vector<const Pod*> pods;
  std::map<std::string_view, std::int64_t> jobs;
  std::map<std::string_view, bool> in_pool;
  std::int64_t waiting = 0, all_jobs = 0;
};

Concerned those_concerned(const Drained& entry, const Observation& seen) {
  Concerned result;
  const auto entries = entries_of(seen.pods, {entry});
  for (std::size_t i = 0; i < seen.pods.size(); ++i) {
    const auto& pod = seen.pods[i];
    if (!entries[i] || pod.state == PodState::succeeded || pod.state == PodState::failed) continue;
    result.pods.push_back(&pod);
    result.jobs[pod.name] = 0;
    if (pod.jobless) ++result.waiting;
  }
  for (const auto& slot : seen.slots) {
    const auto pod = result.jobs.find(slot.pod);
    if (pod == result.jobs.end()) continue;
    result.in_pool[pod->first] = true;
    if (!slot.claimed) continue;
    ++pod->second;
    ++result.all_jobs;
  }
  return result;
}

std::string state_shown(const Pod& pod, const Concerned& all) {
  std::string state(to_string(pod.state));
  if (all.in_pool.contains(pod.name))
    state = to_string(all.jobs.at(pod.name) > 0 ? PodState::claimed : PodState::unmatched);
  if (pod.leaving) return state + ", leaves";
  return pod.told_drained ? state + ", drained" : state;
}

std::string pods_table(const Concerned& all, Time now) {
  std::vector<std::vector<std::string>> rows = {{"POD", "NODE", "STATE", "SINCE", "JOBS"}};
  for (const auto* pod : all.pods) {
    if (rows.size() > k_pods_shown) break;
    const auto age = std::max<std::int64_t>((now - pod->since).count(), 0);
    rows.push_back({harmless(pod->name), pod->node.empty() ? "-" : harmless(pod->node),
                    state_shown(*pod, all), duration_text(age), std::to_string(all.jobs.at(pod->name))});
  }
  auto text = all.pods.empty() ? std::string() : columns(rows);
  if (all.pods.size() > k_pods_shown)
    text += fmt::format("... and {} more\n", all.pods.size() - k_pods_shown);
  return text;
}

std::string what_it_means(const Drained& entry, const DrainOptions& what, const Concerned& all) {
  const auto running = static_cast<std::int64_t>(all.pods.size()) - all.waiting;
  if (!what.mode)
    return fmt::format(
        "Pods are made {} again while jobs wait. Pods that have been told end all the same, after their last "
        "job.\n",
        entry.kind == Drained::Kind::group  ? "for it"
        : entry.kind == Drained::Kind::node ? "for it too"
                                            : "there");
  const auto fewer = entry.kind == Drained::Kind::group  ? "No pods are made for it"
                     : entry.kind == Drained::Kind::node ? "New pods are kept off it"
                                                         : "No pods are made there";
  auto text = fmt::format("{}, until `provisioner undrain`. ", fewer);
  if (all.waiting > 0) text += fmt::format("Removed without having run: {}. ", all.waiting);
  if (*what.mode == Mode::drain)
    return text + fmt::format("Told to take no more jobs, and to end after their last one: {}.\n", running);
  return text +
         fmt::format("Removed while they run: {}; jobs that are vacated, and run again elsewhere: {}.\n",
                     running, all.all_jobs);
}

// Hash or PRP's name of a group, as its hash.
Result<std::string> group_named(const std::string& name, const Observation& seen, const DrainList& list) {
  std::map<std::string, std::string> known;
  for (const auto& pod : seen.pods) known.emplace(pod.group.hash(), pod.group.name());
  for (const auto& [group, demand] : seen.demand.groups) known.emplace(group.hash(), group.name());
  for (const auto& [hash, text] : known)
    if (name == hash || name == text) return hash;
  if (drained(list, Drained::Kind::group, name)) return name;
  std::string all;
  for (const auto& [hash, text] : known) all += fmt::format("\n  {}  {}", hash, text);
  return error("there is no group {}; those with jobs or pods, by name and size:{}", one_line(name, 200),
               all.empty() ? " none" : all);
}

Result<std::string> node_named(const std::string& name, const std::vector<PlacePolicy>& places) {
  const auto place = place_of(name);
  const auto is_it = [&](const PlacePolicy& policy) { return policy.name == place; };
  if (places.empty() ? !place.empty() : std::ranges::none_of(places, is_it))
    return error("there is no node {}: {}", one_line(name, 200),
                 places.empty() ? "this provisioner has no places" : "with several places it is PLACE/NODE");
  return name;
}

Result<std::string> place_named(const std::string& name, const std::vector<PlacePolicy>& places) {
  std::vector<std::string> all;
  for (const auto& place : places) {
    if (place.name == name) return name;
    all.push_back(place.name);
  }
  return error(
      "there is no place {}: {}", one_line(name, 200),
      all.empty() ? "this provisioner has none ([k8s:NAME])" : fmt::format("{}", fmt::join(all, ", ")));
}

// The lease that all of it is about.
Result<nlohmann::json> lease_there(Loop& loop, const Parts& parts, const LeaseOptions& named) {
  auto lease = TRY(read_lease(loop, parts, named));
  if (!lease.is_object())
    return error("there is no lease {}/{}: is a provisioner running with --lease?", named.name_space,
                 named.name);
  return lease;
}

Result<void> write_lease(Loop& loop, const Parts& parts, const LeaseOptions& named,
                         const nlohmann::json& lease) {
  Result<void> result;
  const auto call =
      parts.client->call({.method = "PUT",
                          .path = fmt::format("/apis/coordination.k8s.io/v1/namespaces/{}/leases/{}",
                                              named.name_space, named.name),
                          .body = json_text(lease),
                          .time_limit = k_lease_write_limit,
                          .repeat = http::Plan::Repeat::never},
                         [&](const Result<std::string>& answer) {
                           if (!answer) result = answer.error();
                           loop.stop();
                         });
  TRY(loop.run());
  return result;
}

}  // namespace

std::string describe(const Drained& entry, const DrainOptions& what, const Observation& seen, Time now) {
  const auto all = those_concerned(entry, seen);
  auto text =
      fmt::format("{}: {} pods, {} jobs run in them\n", entry_title(entry), all.pods.size(), all.all_jobs);
  if (seen.supply.blind) text += fmt::format("the pods cannot be seen: {}\n", harmless(*seen.supply.blind));
  return text + pods_table(all, now) + what_it_means(entry, what, all);
}

Result<Drained> entry_named(const DrainOptions& what, const Observation& seen,
                            const std::vector<PlacePolicy>& places, const DrainList& list) {
  Drained entry;
  if (!what.group.empty()) {
    entry.kind = Drained::Kind::group;
    entry.name = TRY(group_named(what.group, seen, list));
  } else if (!what.node.empty()) {
    entry.kind = Drained::Kind::node;
    entry.name = TRY(node_named(what.node, places));
  } else {
    entry.kind = Drained::Kind::place;
    entry.name = what.place;
    if (!drained(list, entry.kind, entry.name)) entry.name = TRY(place_named(what.place, places));
  }
  if (!what.mode && !drained(list, entry.kind, entry.name))
    return error("{} is not drained; --list shows what is", entry_title(entry));
  entry.mode = what.mode.value_or(Mode::drain);
  entry.reason = one_line(trim(what.reason), k_longest_drained);
  entry.since = seen.at;
  if (what.mode && entry.reason.empty()) return error("--reason needs words: each pod has them");
  return entry;
}

DrainList changed_by(DrainList list, const Drained& entry, const DrainOptions& what) {
  std::erase_if(list, [&](const Drained& one) { return one.kind == entry.kind && one.name == entry.name; });
  if (what.mode) list.push_back(entry);
  return list;
}

Result<std::string> drain_once(const ServiceOptions& options, const DrainOptions& what) {
  if (options.lease.empty())
    return error(
        "needs --lease, the lease of the instances, where it is kept what is drained; a provisioner without "
        "one "
        "is to be run with --lease first");
  auto loop = TRY(Loop::create());
  const auto configuration = TRY(read_configuration(options));
  auto parts = TRY(Parts::make(loop, options, configuration, PodFeed::Mode::once, {}));
  if (!parts->client) return error("works with pods of Kubernetes only");
  const auto named = TRY(lease_of(options));
  auto list = TRY(drained_in(TRY(lease_there(loop, *parts, named))));
  if (what.list) return list_table(list);
  Observation seen;
  const auto now = std::chrono::floor<Seconds>(std::chrono::system_clock::now());
  parts->cycle->observe(now, [&](Observation observed) {
    seen = std::move(observed);
    loop.stop();
  });
  TRY(loop.run());
  const auto entry = TRY(entry_named(what, seen, parts->backend->places(), list));
  auto text = describe(entry, what, seen, now);
  if (!what.yes) return text + "Nothing is changed so far: --yes does it.\n";
  for (int attempt = 1;; ++attempt) {
    const auto lease = TRY(lease_there(loop, *parts, named));
    const auto changed = TRY(with_drained(lease, changed_by(TRY(drained_in(lease)), entry, what)));
    const auto written = write_lease(loop, *parts, named, changed);
    if (written) break;
    // The leader has renewed it in between.
    if (attempt == k_lease_attempts || kube::Failure::of(written.error()).status != 409)
      return written.error().in("the lease");
  }
  return text +
         "Done. The leader does it in its next cycle, which begins in some seconds (`provisioner status`).\n";
}

}  // namespace glidepod::provisioner
