#include "provisioner/backends/kubernetes.hpp"

#include <algorithm>

#include "lib/base/json.hpp"
#include "lib/base/log.hpp"
#include "lib/base/text.hpp"
#include "lib/base/time.hpp"
#include "lib/condor/job_ad.hpp"
#include "lib/http/url.hpp"
#include "lib/kube/pulls.hpp"
#include "provisioner/backends/born_ready.hpp"
#include "provisioner/backends/likely_images.hpp"
#include "provisioner/backends/pod_nodes.hpp"
#include "provisioner/backends/pod_state.hpp"
#include "provisioner/decide/breaker.hpp"

namespace glidepod::provisioner {

namespace {

constexpr Seconds k_nodes_age{600};
// A node is some 20 kB of JSON, most of it the names of its images.
constexpr int k_nodes_page = 100;
constexpr Milliseconds k_event_limit{15'000};
// With what an attempt takes at most, over before another process leads (LeaseOptions::give_up).
constexpr Milliseconds k_write_limit{15'000};
// So many nodes must be there before half of them can be missed, and for how long they are.
constexpr std::size_t k_least_nodes = 4;
constexpr Seconds k_believed_after{600};
// An image that keeps a new pod waiting for longer is given to no other for a while.
constexpr Seconds k_slow_image{120}, k_slow_for{3600};
constexpr std::size_t k_most_slow = 100;

Json allocatable_of(const Json& node) {
  const auto pointer = Json::json_pointer("/status/allocatable");
  return node.is_object() && node.contains(pointer) ? node[pointer] : Json();
}

bool counts_limits(const Resources& quota) {
  return quota.limit_cpu_milli != k_unlimited || quota.limit_memory_bytes != k_unlimited;
}

// A node's name and its label for the scheduler.
std::pair<std::string, std::string> names_of(const Json& node) {
  const auto metadata = node.is_object() ? node.value("metadata", Json()) : Json();
  if (!metadata.is_object()) return {};
  return {text_of(metadata, "name"), text_of(metadata.value("labels", Json()), k_host_name)};
}

}  // namespace

// How pods of each group are made, by the annotation k_made_as: now, and without spare containers.
struct Kubernetes::MadeAs {
  std::map<Group, std::string> now, plain;
  std::optional<PodMaker> plain_maker;
};

struct Kubernetes::Look {
  Time now;
  Seen seen;
  std::function<void(Seen)> done;
};

Kubernetes::Kubernetes(kube::Client& client, KubernetesSettings settings, PodMaker maker, PodFeed::Mode mode)
    : calls_(client),
      settings_(std::move(settings)),
      maker_(std::move(maker)),
      feed_(client, calls_, pods_path(), fmt::format("prp-htcondor-portal=wn,k8s-app={}", settings_.app_name),
            mode),
      scale_ups_(calls_, settings_.name_space) {
  const auto pod = maker_.make({}, "any");
  terminating_ = pod && pod.value()["spec"].contains("activeDeadlineSeconds");
  if (mode == PodFeed::Mode::once) return;
  if (!maker_.no_spares().empty())
    spdlog::info("event=no_spares why={}", glidepod::quoted(maker_.no_spares()));
  // Where they are off now there may be some of before, and pilots that wait for them.
  PullLimits limits{0, 0, 0};
  if (settings_.pullers)
    limits = {settings_.pullers_per_node, settings_.pullers_in_all, settings_.pullers_per_minute};
  pullers_ = std::make_unique<Pullers>(
      client,
      PullerPodSettings{settings_.name_space, settings_.app_name, settings_.puller_deadline.count(),
                        settings_.qos_class == QosClass::guaranteed},
      limits);
  feed_.listen(pullers_->pilots_listener());
}

std::string Kubernetes::pods_path(std::string_view name) const {
  return fmt::format("/api/v1/namespaces/{}/pods{}{}", settings_.name_space, name.empty() ? "" : "/", name);
}

void Kubernetes::look(Time now, std::function<void(Seen)> done) {
  auto look = std::make_shared<Look>();
  look->now = now;
  look->done = std::move(done);
  if (pullers_) pullers_->read(now);
  feed_.read(now, [this, look](const Result<void>& read) {
    if (read) return read_quota(look);
    look->seen.blind = read.error().message();
    look->done(std::move(look->seen));
  });
}

void Kubernetes::read_quota(const std::shared_ptr<Look>& look) {
  const auto path = fmt::format("/api/v1/namespaces/{}/resourcequotas", settings_.name_space);
  calls_.call({.path = path}, [this, look](const Result<std::string>& answer) {
    if (!answer) {
      // The watch of the pods says nothing while nothing changes; this is what tells that the API is there.
      const auto failure = kube::Failure::of(answer.error());
      if (failure.status != 403 && failure.status != 404) {
        look->seen.blind = "quotas: " + failure.to_string();
        return look->done(std::move(look->seen));
      }
    } else if (const auto list = json_from(answer.value()); list.is_object()) {
      if (const auto quota = read_quotas(list, terminating_, maker_.priority_classes(), maker_.devices())) {
        look->seen.capacity.quota = quota->hard;
        // Each spare container may use as much as any other, so that its limits count in full.
        if (!settings_.warm && counts_limits(quota->hard))
          leave_out_spares("a quota of the namespace counts limits");
        look->seen.capacity.quota_left = quota->left;
      }
    }
    if (look->now >= nodes_read_ && look->now - nodes_read_ < k_nodes_age) return read_scale_ups(look);
    nodes_read_ = look->now;
    read_node_sizes(look);
  });
}

void Kubernetes::read_node_sizes(const std::shared_ptr<Look>& look) {
  const auto nodes = std::make_shared<Json>();
  const auto hosts = std::make_shared<std::map<std::string, std::string>>();
  kube::read_list(calls_, {"/api/v1/nodes", {}, k_nodes_page},
                  {[nodes, hosts] {
                     *nodes = {{"items", Json::array()}};
                     hosts->clear();
                   },
                   [nodes, hosts](const Json& node) {
                     const auto [name, host] = names_of(node);
                     if (!host.empty() && host != name) (*hosts)[name] = host;
                     (*nodes)["items"].push_back({{"status", {{"allocatable", allocatable_of(node)}}}});
                   },
                   [this, look, nodes, hosts](const Result<std::string>& version) {
                     // The sizes from before are kept where they cannot be read this time; all are unknown
                     // where that is forbidden.
                     if (version && believed(*look, (*nodes)["items"].size())) {
                       nodes_ = read_nodes(*nodes, settings_.gpus_on_nodes, maker_.devices());
                       host_names_ = std::move(*hosts);
                     }
                     read_scale_ups(look);
                   }});
}

// Pods that were made before stay as they are, but for those that have yet to get a node.
void Kubernetes::leave_out_spares(const std::string& why) {
  if (maker_.spares({}) == 0) return;
  spdlog::warn("event=no_spares why={}", glidepod::quoted(why));
  // One place of several may learn it late, when fit() is at work aside.
  const std::scoped_lock lock(making_);
  maker_.leave_out_spares(why);
  needs_.clear();
}

// Half of the nodes are not gone at once, as a rule: the API shows it for a while before it is believed.
bool Kubernetes::believed(Look& look, std::size_t nodes) {
  if (nodes * 2 > nodes_seen_ || nodes_seen_ < k_least_nodes) {
    fewer_since_ = {};
    nodes_seen_ = nodes;
    return true;
  }
  if (fewer_since_ == Time{}) fewer_since_ = look.now;
  if (look.now - fewer_since_ >= k_believed_after) {
    fewer_since_ = {};
    nodes_seen_ = nodes;
    return true;
  }
  nodes_read_ = look.now - k_nodes_age;  // asked again the next time
  look.seen.problems.push_back(fmt::format("{} of {} nodes are gone at once: this is believed after {} s",
                                           nodes_seen_ - nodes, nodes_seen_, k_believed_after.count()));
  return false;
}

// Whether a node is being made matters only to pods that have none.
void Kubernetes::read_scale_ups(const std::shared_ptr<Look>& look) {
  if (!feed_.has(PodState::unschedulable)) return finish(look);
  scale_ups_.read(look->now, [this, look] { finish(look); });
}

// The pods as they are now, not as they were when the look began: what it waited for may have taken a while.
void Kubernetes::finish(const std::shared_ptr<Look>& look) {
  MadeAs made_as;
  const auto hosts = avoided_hosts();
  judged_.clear();
  look->seen.pods.reserve(feed_.pods().size());
  feed_.each(
      look->seen.problems, [&](const std::string& name, const PodFeed::Entry& entry, const Pod& known) {
        auto& pod = look->seen.pods.emplace_back(known);
        if (pod.state == PodState::unschedulable)
          if (const auto words = scale_ups_.words_for(entry.uid, look->now); !words.empty()) {
            pod.node_comes = true;
            pod.message = pod.message.empty() ? words : pod.message.str() + "; " + words;
          }
        // One that waits for a node must not be kept from those that are avoided no more: only there may be
        // room.
        const bool kept_away =
            pod.state == PodState::unschedulable && std::ranges::any_of(pod.avoids, [&](const auto& host) {
              return std::ranges::find(hosts, host) == hosts.end();
            });
        const bool ended = pod.state == PodState::succeeded || pod.state == PodState::failed;
        // No other is ever removed.
        if (pod.jobless || ended) judged_[name] = {entry.uid, entry.version};
        pod.outdated = pod.jobless && (kept_away || is_outdated(pod, made_as));
        if (look->now - pod.since > k_slow_image)
          for (const auto& image : pod.awaits)
            if (slow_.size() < k_most_slow) slow_[image] = look->now + k_slow_for;
      });
  looked_ = look->now;
  with_spares_.clear();
  for (const auto& pod : look->seen.pods)
    if (pod.spares > 0) with_spares_.push_back(pod);
  std::erase_if(told_, [this](const auto& pod) { return !feed_.pods().contains(pod.first); });
  std::erase_if(slow_, [&](const auto& image) { return image.second <= look->now; });
  look->seen.capacity.nodes = nodes_;
  look->done(std::move(look->seen));
}

List Kubernetes::avoided_hosts() const {
  List result;
  for (const auto& node : avoid_) {
    const auto known = host_names_.find(node);
    result.push_back(known == host_names_.end() ? node : known->second);
  }
  return result;
}

// The image is not asked for: admission may have put a mirror's in its place.
bool Kubernetes::is_outdated(const Pod& pod, MadeAs& made_as) const {
  if (pod.made_as.empty()) return false;
  const auto differs = [&pod](std::map<Group, std::string>& known, const PodMaker& maker) {
    const auto [now, first] = known.try_emplace(pod.group);
    if (first)
      if (const auto made = maker.make(pod.group, "any"))
        now->second = made.value()["metadata"]["annotations"][k_made_as];
    return pod.made_as != now->second;
  };
  if (!differs(made_as.now, maker_)) return false;
  if (maker_.spares(pod.group) == 0) return true;
  // Another process has learnt that spare containers are refused here, which this one may have yet to.
  if (!made_as.plain_maker) {
    made_as.plain_maker = maker_;
    made_as.plain_maker->leave_out_spares("refused");
  }
  return differs(made_as.plain, *made_as.plain_maker);
}

Demand Kubernetes::fit(Demand demand, Capacity& capacity) const {
  std::unique_lock lock(making_);
  const auto before = std::exchange(needs_, {});
  const auto maker = maker_;
  lock.unlock();
  const auto need_of = [&maker](const Group& group) -> Result<Resources> {
    return resources_of_pod(TRY(maker.make(group, "any")));
  };
  // A pod of each of 10,000 groups takes seconds to make, and these are mostly the groups of before.
  std::map<Group, Result<Resources>> needs;
  for (const auto& entry : demand.groups) {
    const auto& group = entry.first;
    const auto known = before.find(group);
    const auto& need =
        needs.emplace(group, known == before.end() ? need_of(group) : known->second).first->second;
    if (need)
      capacity.needs[group] = need.value();
    else
      capacity.unservable[group] = need.error().message();
  }
  lock.lock();
  if (maker.no_spares() == maker_.no_spares()) needs_ = std::move(needs);
  return demand;
}

void Kubernetes::want(const std::map<Group, GroupDemand>& groups) {
  wanted_ = groups;
  if (no_telling_) return;
  for (const auto& [name, text] : to_tell(with_spares_, groups, told_, looked_)) {
    const auto pod = feed_.pods().find(name);
    if (pod == feed_.pods().end()) continue;
    told_[name] = looked_;
    const Json patch = {
        {"metadata", {{"uid", pod->second.uid}, {"annotations", {{kube::k_likely_images, text}}}}}};
    calls_.call({.method = "PATCH",
                 .path = pods_path(name) + "?fieldManager=glidepod-provisioner",
                 .body = json_text(patch),
                 .content_type = "application/merge-patch+json",
                 .time_limit = k_event_limit},
                [this, told = name](const Result<std::string>& answer) {
                  if (answer) return;
                  const bool forbidden = kube::Failure::of(answer.error()).status == 403;
                  if (!forbidden || !std::exchange(no_telling_, true))
                    spdlog::warn("event=likely_images_not_told pod={} why={}", told,
                                 glidepod::quoted(answer.error().message()));
                });
  }
}

void Kubernetes::create(const Group& group, const std::string& name, std::function<void(Result<void>)> done) {
  auto pod = maker_.make(group, name);
  // fit() has tried it: an error comes from a change in between, and the handler from the loop all the same.
  if (!pod) {
    calls_.later([done = std::move(done), failure = pod.error()] { done(failure); });
    return;
  }
  avoid_nodes(pod.value(), avoided_hosts());
  const auto wanted = wanted_.find(group);
  if (!settings_.born_ready || wanted == wanted_.end()) return post_made(group, pod.value(), std::move(done));
  auto born_ready = pod.value();
  const auto may_be = [this](const std::string& image) {
    return !slow_.contains(image) && is_from(image, settings_.born_ready_from);
  };
  if (!give_births(born_ready, wanted->second, may_be)) return post_made(group, pod.value(), std::move(done));
  // What is refused for a job's image must not keep all jobs without a pilot.
  post(born_ready,
       [this, name, group, plain = std::move(pod.value()), done = std::move(done)](const Result<void>& made) {
         if (made || !kube::Failure::of(made.error()).rejected()) return done(made);
         spdlog::warn("event=not_born_ready pod={} why={}", name, glidepod::quoted(made.error().message()));
         post_made(group, plain, done);
       });
}

// A LimitRange or a policy may refuse what the template alone would be let in with.
void Kubernetes::post_made(const Group& group, const Json& pod, std::function<void(Result<void>)> done) {
  if (maker_.spares(group) == 0) return post(pod, std::move(done));
  post(pod, [this, group, name = text_of(pod["metadata"], "name"),
             done = std::move(done)](const Result<void>& made) {
    if (made) return done(made);
    const auto failure = kube::Failure::of(made.error());
    // A quota may have room for the next one, which says nothing of spare containers.
    if (!failure.rejected() || failure.retriable() || names_quota(made.error().message())) return done(made);
    auto maker = maker_;
    maker.leave_out_spares("refused");
    auto plain = maker.make(group, name);
    if (!plain) return done(plain.error());
    avoid_nodes(plain.value(), avoided_hosts());
    post(plain.value(), [this, why = made.error().message(), done](const Result<void>& without) {
      if (without) leave_out_spares("with spare containers a pod is refused: " + why);
      done(without);
    });
  });
}

void Kubernetes::post(const Json& pod, std::function<void(Result<void>)> done) {
  calls_.call({.method = "POST", .path = pods_path(), .body = json_text(pod), .time_limit = k_write_limit},
              [this, pod, done = std::move(done)](const Result<std::string>& answer) {
                if (answer) {
                  feed_.made(answer.value());
                  return done({});
                }
                const auto failure = kube::Failure::of(answer.error());
                if (failure.status == 409 && failure.reason == "AlreadyExists")
                  return compare(pod, answer.error(), done);
                done(answer.error());
              });
}

// Its name is made for this one creation, so an attempt whose answer was lost has made it; unless names of
// two groups are the same. It may list pods, but not get one.
void Kubernetes::compare(const Json& pod, const Error& conflict, std::function<void(Result<void>)> done) {
  const std::string name(text_view(member(pod, "metadata"), "name"));
  calls_.call(
      {.path = pods_path() + "?fieldSelector=" + http::url_encoded("metadata.name=" + name)},
      [name, group = group_of_pod(pod), conflict, done = std::move(done)](const Result<std::string>& answer) {
        if (!answer) return done(answer.error());
        const auto list = json_from(answer.value());
        for (const auto& there : member(list, "items")) {
          const auto other = group_of_pod(there);
          const bool same = group && other && group.value() == other.value();
          if (same && text_view(member(there, "metadata"), "name") == name) return done({});
        }
        done(conflict.in("of another group"));
      });
}

void Kubernetes::remove(const std::string& name, std::function<void(Result<void>)> done) {
  const auto pod = judged_.find(name);
  // Another pod that got the name since is not meant, nor is this one if anything has happened to it: it may
  // have got its image and be at work.
  Json conditions = {{"uid", pod == judged_.end() ? "unknown" : pod->second.first}};
  if (pod != judged_.end() && !pod->second.second.empty()) conditions["resourceVersion"] = pod->second.second;
  delete_pod(name, conditions, std::move(done));
}

void Kubernetes::delete_pod(const std::string& name, const Json& conditions,
                            std::function<void(Result<void>)> done) {
  const Json options = {{"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"preconditions", conditions}};
  calls_.call(
      {.method = "DELETE", .path = pods_path(name), .body = json_text(options), .time_limit = k_write_limit},
      [done = std::move(done)](const Result<std::string>& answer) {
        if (answer || kube::Failure::of(answer.error()).status == 404) return done({});
        done(answer.error());
      });
}

void Kubernetes::drain(const Draining& draining, std::function<void(Result<void>)> done) {
  const auto pod = feed_.pods().find(draining.pod);
  if (pod == feed_.pods().end()) return calls_.later([done = std::move(done)] { done({}); });
  const bool kills = draining.mode == Drained::Mode::kill;
  const Json uid = {{"uid", pod->second.uid}};
  auto metadata = uid;
  metadata["annotations"] = {{k_drained, one_line(draining.reason, k_longest_drained)}};
  calls_.call(
      {.method = "PATCH",
       .path = pods_path(draining.pod) + "?fieldManager=glidepod-provisioner",
       .body = json_text({{"metadata", metadata}}),
       .content_type = "application/merge-patch+json",
       .time_limit = k_write_limit},
      [this, kills, name = draining.pod, uid, done = std::move(done)](const Result<std::string>& answer) {
        const auto status = answer ? 0 : kube::Failure::of(answer.error()).status;
        if (status == 404) return done({});
        // Without the right to patch pods it says less, and goes all the same.
        if (!kills || (!answer && status != 403))
          return done(answer ? Result<void>() : Result<void>(answer.error()));
        delete_pod(name, uid, done);
      });
}

void Kubernetes::tell(const PodEvent& event, Time now) {
  // Names are used once.
  const auto pod = feed_.pods().find(event.pod);
  if (!settings_.pod_events || no_events_ || pod == feed_.pods().end()) return;
  const std::string source = "glidepod-provisioner", time = time_text(now);
  const Json body = {{"apiVersion", "v1"},
                     {"kind", "Event"},
                     {"metadata",
                      {{"name", fmt::format("{}.{}", event.pod, random_hex(8))},
                       {"namespace", settings_.name_space},
                       {"labels", {{"app.kubernetes.io/part-of", "glidepod"}}}}},
                     {"involvedObject",
                      {{"apiVersion", "v1"},
                       {"kind", "Pod"},
                       {"namespace", settings_.name_space},
                       {"name", event.pod},
                       {"uid", pod->second.uid}}},
                     {"type", event.warning ? "Warning" : "Normal"},
                     {"reason", event.reason},
                     {"message", event.message},
                     {"source", {{"component", source}}},
                     {"reportingComponent", source},
                     {"firstTimestamp", time},
                     {"lastTimestamp", time},
                     {"count", 1}};
  calls_.call({.method = "POST",
               .path = fmt::format("/api/v1/namespaces/{}/events", settings_.name_space),
               .body = json_text(body),
               .time_limit = k_event_limit},
              [this](const Result<std::string>& answer) {
                if (answer || no_events_) return;
                const auto failure = kube::Failure::of(answer.error());
                no_events_ = failure.status == 403 || failure.status == 404 || failure.status == 405;
                if (no_events_)
                  spdlog::warn("event=no_pod_events why={}", glidepod::quoted(answer.error().message()));
              });
}

std::string Kubernetes::slot_constraint() const {
  return fmt::format(
      "(K8SProvisionerType =?= \"PRPHTCondorProvisioner\") && (K8SProvisionerName =?= {}) && (K8SNamespace "
      "=?= {}) && "
      "(K8SDomain =?= {})",
      condor::quote(settings_.app_name), condor::quote(settings_.name_space),
      condor::quote(settings_.domain));
}

}  // namespace glidepod::provisioner
