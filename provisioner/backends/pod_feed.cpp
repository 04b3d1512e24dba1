#include "provisioner/backends/pod_feed.hpp"

#include <algorithm>

#include "lib/base/json.hpp"
#include "lib/http/url.hpp"
#include "provisioner/backends/pod_state.hpp"

namespace glidepod::provisioner {

namespace {

constexpr int k_page = 50;  // a pod is some 10 kB of JSON, and ten times that as a tree
constexpr Seconds k_resync{900};
constexpr Seconds k_stream_limit{240};

}  // namespace

void PodFeed::put(std::map<std::string, Entry>& pods, const Json& pod) {
  const auto& metadata = member(pod, "metadata");
  auto read = read_pod(pod);
  if (read) {
    auto& known = read.value();
    for (auto* text : {&known.image, &known.node, &known.made_as, &known.message, &known.group.labels,
                       &known.group.disk_volumes, &known.group.gpu_types})
      texts_.share(*text);
  }
  pods.insert_or_assign(text_of(metadata, "name"), Entry{std::move(read), text_of(metadata, "uid"),
                                                         text_of(metadata, "resourceVersion")});
}

void PodFeed::read(Time now, std::function<void(Result<void>)> done) {
  // A clock that was set back must not put off the next list.
  if (watch_ && now >= listed_ && now - listed_ < k_resync)
    return calls_.later([done = std::move(done)] { done({}); });
  watch_.reset();
  const auto pods = std::make_shared<std::map<std::string, Entry>>();
  kube::read_list(calls_, {path_, "labelSelector=" + http::url_encoded(selector_), k_page},
                  {[this, pods] {
                     pods->clear();
                     if (listener_.begin) listener_.begin();
                   },
                   [this, pods](const Json& pod) {
                     put(*pods, pod);
                     if (listener_.changed) listener_.changed(pod);
                   },
                   [this, now, pods, done = std::move(done)](Result<std::string> version) {
                     if (!version) return done(std::move(version).error().in("list of pods"));
                     pods_ = std::move(*pods);
                     texts_.tidy();
                     version_ = std::move(version).value();
                     listed_ = now;
                     if (listener_.listed) listener_.listed();
                     if (mode_ == Mode::followed && !version_.empty()) follow();
                     done({});
                   }});
}

void PodFeed::each(
    std::vector<std::string>& problems,
    const std::function<void(const std::string& name, const Entry& entry, const Pod& pod)>& see) const {
  for (const auto& named : pods_) {
    const auto& pod = named.second.pod;
    if (pod)
      see(named.first, named.second, pod.value());
    else
      problems.push_back(pod.error().message());
  }
}

bool PodFeed::has(PodState state) const {
  return std::ranges::any_of(
      pods_, [state](const auto& entry) { return entry.second.pod && entry.second.pod->state == state; });
}

void PodFeed::follow() {
  watch_ = std::make_unique<kube::Watch>(
      client_,
      kube::Watch::Source{.path = path_,
                          .selector = "labelSelector=" + http::url_encoded(selector_),
                          .version = version_,
                          .stream_limit = k_stream_limit,
                          .resumptions = resumptions_},
      kube::Watch::Handlers{[this](const Json& pod) {
                              put(pods_, pod);
                              if (listener_.changed) listener_.changed(pod);
                            },
                            [this](const Json& pod) {
                              const auto name = text_of(member(pod, "metadata"), "name");
                              pods_.erase(name);
                              if (listener_.gone) listener_.gone(name);
                            },
                            // What was missed the next list mends.
                            [this](const kube::Failure&) { watch_.reset(); }});
}

void PodFeed::made(const std::string& body) {
  const auto pod = json_from(body);
  const auto name = text_of(member(pod, "metadata"), "name");
  // What the watch has told already is newer.
  if (!name.empty() && !pods_.contains(name)) put(pods_, pod);
}

}  // namespace glidepod::provisioner
