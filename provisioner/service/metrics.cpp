#include "provisioner/service/metrics.hpp"

#include <algorithm>

#include "provisioner/service/container_memory.hpp"
#include "provisioner/service/metric_text.hpp"

namespace glidepod::provisioner {

namespace {

// Job owners choose the groups: only so many of them become time series.
constexpr std::size_t k_most_groups = 100;

constexpr std::array<Decision::Verdict, 7> k_verdicts = {
    Decision::Verdict::submit,   Decision::Verdict::enough, Decision::Verdict::limited,
    Decision::Verdict::stopped,  Decision::Verdict::canary, Decision::Verdict::unservable,
    Decision::Verdict::no_demand};

constexpr std::array<PodState, 11> k_states = {
    PodState::gated,    PodState::unschedulable, PodState::pulling,   PodState::pull_error,
    PodState::starting, PodState::unregistered,  PodState::unmatched, PodState::claimed,
    PodState::unknown,  PodState::succeeded,     PodState::failed};

std::string label(std::string_view value) {
  std::string result;
  for (const char c : value) {
    if (c == '\\' || c == '"') result += '\\';
    if (c == '\n')
      result += "\\n";
    else
      result += c;
  }
  return result;
}

std::string full(std::string_view name) {
  return fmt::format("glidepod_provisioner_{}", name);
}

void head(std::string& text, std::string_view name, std::string_view type, std::string_view help) {
  metric_head(text, full(name), type, help);
}

template <typename T>
void sample(std::string& text, std::string_view name, const std::string& labels, T value) {
  metric_sample(text, full(name), labels, value);
}

template <typename T>
void single(std::string& text, std::string_view name, std::string_view type, std::string_view help, T value) {
  head(text, name, type, help);
  sample(text, name, {}, value);
}

void histogram(std::string& text, std::string_view name, const std::string& labels, const Histogram& values) {
  metric_histogram(text, full(name), labels, Histogram::k_bounds, values.buckets, values.count, values.sum);
}

// As the pods' labels have it, and what it means.
std::string group_labels(const Group& group) {
  auto text = fmt::format("group=\"{}\",cpus=\"{}\",memory_mb=\"{}\",disk_kb=\"{}\",gpus=\"{}\"",
                          group.hash(), group.cpus, group.memory_mb, group.disk_kb, group.gpus);
  const std::pair<const char*, const SharedText*> rare[] = {
      {"gpu_types", &group.gpu_types}, {"disk_volumes", &group.disk_volumes}, {"labels", &group.labels}};
  for (const auto& [name, value] : rare)
    if (!value->empty()) text += fmt::format(",{}=\"{}\"", name, label(value->view()));
  return text;
}

// One metric of each of the groups that have most of what it counts.
void by_group(std::string& text, const Plan& plan, std::string_view name, std::string_view help,
              const std::function<std::int64_t(const Decision&)>& value) {
  head(text, name, "gauge", help);
  std::vector<const Decision*> order;
  for (const auto& decision : plan.decisions) order.push_back(&decision);
  std::stable_sort(order.begin(), order.end(), [](const Decision* a, const Decision* b) {
    return a->demand.idle + a->supply.live() > b->demand.idle + b->supply.live();
  });
  std::int64_t others = 0;
  for (std::size_t i = 0; i < order.size(); ++i)
    if (i < k_most_groups)
      sample(text, name, group_labels(order[i]->group), value(*order[i]));
    else
      others += value(*order[i]);
  if (order.size() > k_most_groups) sample(text, name, "group=\"others\"", others);
}

// Of the named places, where there are some.
void by_place(std::string& text, const Observation& seen, const Plan& plan) {
  if (seen.supply.places.empty()) return;
  std::map<std::string, std::int64_t> submit;
  for (const auto& decision : plan.decisions)
    for (const auto& in : decision.places) submit[in.place] += in.submit;
  const auto of = [](const std::string& place) { return fmt::format("place=\"{}\"", place); };
  head(text, "place_seen", "gauge",
       "1: the place answers; 0: it gets no pods, and has those of the last sight");
  for (const auto& [name, place] : seen.supply.places)
    sample(text, "place_seen", of(name), place.unseen.empty() ? 1 : 0);
  head(text, "place_pods", "gauge", "Pods by place, state and cause");
  for (const auto& [name, place] : seen.supply.places) {
    std::map<PodState, std::int64_t> pods;
    for (const auto& [group, supply] : place.groups)
      for (const auto& [state, count] : supply.states) pods[state] += count;
    for (const auto state : k_states)
      sample(text, "place_pods", fmt::format("{},state=\"{}\"", of(name), to_string(state)), pods[state]);
  }
  head(text, "place_submit", "gauge", "Pods to be made in a place");
  for (const auto& [name, count] : submit) sample(text, "place_submit", of(name), count);
}

std::size_t index_of(Decision::Verdict verdict) {
  return static_cast<std::size_t>(std::find(k_verdicts.begin(), k_verdicts.end(), verdict) -
                                  k_verdicts.begin());
}

}  // namespace

void Metrics::show(const Plan& plan) {
  ++cycles_;
  if (plan.blind) ++blind_cycles_;
  for (const auto& decision : plan.decisions) ++decisions_[index_of(decision.verdict)];
  cycle_ = std::move(next_cycle_);
  pilots_text_ = std::move(next_pilots_text_);
}

void Metrics::prepare(const Observation& seen, const Plan& plan) {
  auto& text = next_cycle_;
  text.clear();
  single(text, "blind", "gauge", "1: the pool or the cluster could not be seen, so nothing was decided",
         plan.blind ? 1 : 0);
  single(text, "schedds", "gauge", "Schedds that were asked", seen.demand.schedds_asked);
  single(text, "schedds_failed", "gauge", "Schedds that did not answer", seen.demand.schedds_failed);
  single(text, "bad_ads", "gauge", "Ads of the pool that could not be read", seen.demand.bad_ads);
  single(text, "schedds_vanished", "gauge", "Of these, such as have left the collector within an hour",
         seen.demand.schedds_vanished);
  if (!plan.blind) pilots.saw(seen);
  next_pilots_text_ = pilots.text();
  if (plan.blind) return;

  std::map<PodState, std::int64_t> pods;
  std::map<Decision::Verdict, std::int64_t> verdicts;
  std::int64_t idle = 0, wasted = 0, broken = 0;
  for (const auto& [group, supply] : seen.supply.groups) {
    for (const auto& [state, count] : supply.states) pods[state] += count;
    wasted += supply.wasted;
    broken += supply.broken;
  }
  for (const auto& decision : plan.decisions) {
    ++verdicts[decision.verdict];
    idle += decision.demand.idle;
  }
  // Without breakers of images that are not used any more.
  const auto open = std::ranges::count_if(
      plan.decisions, [&plan](const Decision& decision) { return plan.breaker_open(decision); });
  single(text, "groups", "gauge", "Groups of jobs and pods", plan.decisions.size());
  single(text, "idle_jobs", "gauge", "Idle jobs", idle);
  std::int64_t unmet = 0;
  for (const auto& entry : seen.demand.unmet) unmet += entry.second.idle;
  single(text, "unmet_jobs", "gauge", "Idle jobs that are none of these: no pilot meets their requirements",
         unmet);
  head(text, "pods", "gauge", "Pods by state and cause");
  for (const auto state : k_states)
    sample(text, "pods", fmt::format("state=\"{}\"", to_string(state)), pods[state]);
  single(text, "pods_broken", "gauge", "Pods that cannot pull, start or register in time", broken);
  single(text, "pods_wasted", "gauge", "Pods that ended without a job lately", wasted);
  single(text, "breakers_open", "gauge", "Groups and images that are stopped", open);
  single(text, "nodes_avoided", "gauge", "Nodes that new pods are kept from, since pilots fail there",
         plan.avoid.size());
  head(text, "groups_decided", "gauge", "Groups by verdict");
  for (const auto verdict : k_verdicts)
    sample(text, "groups_decided", fmt::format("verdict=\"{}\"", to_string(verdict)), verdicts[verdict]);
  by_place(text, seen, plan);
  by_group(text, plan, "group_idle_jobs", "Idle jobs of a group",
           [](const Decision& d) { return d.demand.idle; });
  by_group(text, plan, "group_pods", "Pods of a group that have not ended",
           [](const Decision& d) { return d.supply.live(); });
  by_group(text, plan, "group_claimed", "Pods of a group with a job",
           [](const Decision& d) { return d.supply.claimed; });
  by_group(text, plan, "group_submit", "Pods of a group to be made",
           [](const Decision& d) { return d.submit; });
}

void Metrics::applied(const Plan& plan, const Applied& applied, Time ended, double seconds) {
  created_ += static_cast<std::uint64_t>(applied.created);
  removed_ += static_cast<std::uint64_t>(applied.removed);
  not_created_ += static_cast<std::uint64_t>(applied.not_created);
  not_removed_ += static_cast<std::uint64_t>(applied.not_removed);
  if (!plan.blind) last_cycle_ = ended;
  cycle_duration_.add(seconds);
}

std::string Metrics::text() const {
  std::string text;
  head(text, "build_info", "gauge", "1, with the program's version");
  sample(text, "build_info", "version=\"" GLIDEPOD_VERSION "\"", 1);
  single(text, "leader", "gauge", "1: this instance makes pods, 0: another one does", leads_ ? 1 : 0);
  single(text, "took_lead_total", "counter", "How often this instance began to lead", took_lead_);
  head(text, "status_written_total", "counter", "Status files by result");
  sample(text, "status_written_total", "result=\"written\"", status_good_);
  sample(text, "status_written_total", "result=\"failed\"", status_bad_);
  const auto memory = container_memory().value_or(ContainerMemory{});
  single(text, "memory_bytes", "gauge", "Memory of this container, HTCondor's tools included; 0: not known",
         memory.used);
  single(text, "token_end_timestamp_seconds", "gauge",
         "When the first of the pool's tokens expires; 0: none does",
         token_ends.value_or(Time()).time_since_epoch().count());
  single(text, "memory_limit_bytes", "gauge", "What it may have; 0: no limit, or not known", memory.limit);
  text += cycle_;
  head(text, "cycles_total", "counter", "Cycles by result");
  sample(text, "cycles_total", "result=\"decided\"", cycles_ - blind_cycles_);
  sample(text, "cycles_total", "result=\"blind\"", blind_cycles_);
  single(text, "last_cycle_timestamp_seconds", "gauge", "When a cycle that was not blind ended last",
         last_cycle_.time_since_epoch().count());
  head(text, "cycle_duration_seconds", "histogram", "How long a cycle takes");
  histogram(text, "cycle_duration_seconds", {}, cycle_duration_);
  head(text, "decisions_total", "counter", "Decisions by verdict");
  for (std::size_t i = 0; i < k_verdicts.size(); ++i)
    sample(text, "decisions_total", fmt::format("verdict=\"{}\"", to_string(k_verdicts[i])), decisions_[i]);
  single(text, "pods_created_total", "counter", "Pods made", created_);
  single(text, "pods_removed_total", "counter", "Pods removed", removed_);
  head(text, "pod_requests_failed_total", "counter",
       "Pods that could not be made or removed, by what was tried");
  sample(text, "pod_requests_failed_total", "operation=\"create\"", not_created_);
  sample(text, "pod_requests_failed_total", "operation=\"remove\"", not_removed_);
  head(text, "settings_read_total", "counter", "Readings of changed settings");
  sample(text, "settings_read_total", "result=\"used\"", settings_good_);
  sample(text, "settings_read_total", "result=\"refused\"", settings_bad_);
  head(text, "api_requests_total", "counter",
       "Requests to the Kubernetes API by HTTP status code; 0: no answer");
  for (const auto& [what, count] : api.requests)
    sample(text, "api_requests_total", fmt::format("method=\"{}\",code=\"{}\"", what.first, what.second),
           count);
  head(text, "api_request_duration_seconds", "histogram", "How long such a request takes");
  for (const auto& [method, values] : api.seconds)
    histogram(text, "api_request_duration_seconds", fmt::format("method=\"{}\"", method), values);
  return text + pilots_text_;
}

}  // namespace glidepod::provisioner
