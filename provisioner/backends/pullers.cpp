#include "provisioner/backends/pullers.hpp"

#include "lib/base/json.hpp"
#include "lib/base/log.hpp"

namespace glidepod::provisioner {

namespace {

constexpr std::chrono::seconds k_minute{60};

}  // namespace

Pullers::Pullers(kube::Client& client, PullerPodSettings settings, PullLimits limits)
    : calls_(client),
      settings_(std::move(settings)),
      limits_(limits),
      feed_(client, calls_, fmt::format("/api/v1/namespaces/{}/pods", settings_.name_space),
            puller_selector(settings_.app_name), PodFeed::Mode::followed) {
  feed_.listen({[this] {
                  pullers_known_ = false;
                  pullers_.clear();
                },
                [this](const Json& pod) { take(read_puller(pod)); },
                [this](const std::string& name) {
                  pullers_.erase(name);
                  soon();
                },
                [this] {
                  pullers_known_ = true;
                  soon();
                }});
}

Pullers::~Pullers() = default;

PodFeed::Listener Pullers::pilots_listener() {
  return {[this] {
            pilots_known_ = false;
            pilots_.clear();
          },
          [this](const Json& pod) {
            const auto name = text_of(member(pod, "metadata"), "name");
            if (auto pilot = read_pulling_pilot(pod))
              pilots_.insert_or_assign(name, *std::move(pilot));
            else if (pilots_.erase(name) == 0)
              return;
            soon();
          },
          [this](const std::string& name) {
            if (pilots_.erase(name) != 0) soon();
          },
          [this] {
            pilots_known_ = true;
            soon();
          }};
}

void Pullers::take(Puller puller) {
  const auto before = pullers_.find(puller.name);
  const bool failed = puller.state == kube::PulledImage::State::failed;
  // The pause between two attempts has no words of the registry: those of the attempt before it stand.
  if (failed && puller.reason == "ImagePullBackOff" && before != pullers_.end() &&
      before->second.uid == puller.uid && before->second.state == puller.state) {
    puller.reason = before->second.reason;
    puller.message = before->second.message;
  }
  pullers_.insert_or_assign(puller.name, std::move(puller));
  soon();
}

void Pullers::read(Time now) {
  if (winding_up_) return;
  feed_.read(now, [this](const Result<void>& end) {
    if (!end) return spdlog::warn("event=pullers_not_seen why={}", glidepod::quoted(end.error().message()));
    soon();  // what failed is tried again
  });
}

void Pullers::wind_up() {
  winding_up_ = true;
  calls_.wind_up();
}

// Looks once at all that has come at the same time.
void Pullers::soon() {
  if (std::exchange(soon_, true) || winding_up_) return;
  calls_.later([this] { act(); });
}

std::map<std::string, std::int64_t> Pullers::made_lately() {
  const auto now = std::chrono::steady_clock::now();
  while (!made_.empty() && made_.front().first + k_minute < now) made_.pop_front();
  std::map<std::string, std::int64_t> result;
  for (const auto& [time, node] : made_) ++result[node];
  return result;
}

void Pullers::act() {
  soon_ = false;
  if (winding_up_ || !pilots_known_ || !pullers_known_) return;
  auto all = pullers_;
  all.insert(refused_.begin(), refused_.end());
  const PullPlan plan = plan_pulls(pilots_, all, made_lately(), limits_, settings_.app_name);
  for (const auto& wanted : plan.create)
    if (!busy_.contains(wanted.name)) create(wanted);
  for (const auto& name : plan.remove)
    if (refused_.erase(name) == 0 && !busy_.contains(name)) remove(pullers_.at(name));
  for (const auto& [name, text] : plan.annotate)
    if (!busy_.contains(name)) annotate(pilots_.at(name), text);
}

void Pullers::create(const PullPlan::New& wanted) {
  const auto body = json_text(make_puller(wanted, settings_));
  busy_.insert(wanted.name);
  made_.emplace_back(std::chrono::steady_clock::now(), wanted.key.node);
  spdlog::info("event=puller pod={} node={} image={}", wanted.name, wanted.key.node,
               glidepod::quoted(wanted.key.image));
  calls_.call({.method = "POST",
               .path = fmt::format("/api/v1/namespaces/{}/pods", settings_.name_space),
               .body = body},
              [this, wanted](const Result<std::string>& answer) {
                busy_.erase(wanted.name);
                // A pod of this name that is there already: the watch tells of it, or of its end.
                if (!answer && kube::Failure::of(answer.error()).status == 409) return;
                if (answer) {
                  const Puller made = read_puller(json_from(answer.value()));
                  if (made.name == wanted.name) pullers_.try_emplace(made.name, made);
                } else {
                  spdlog::warn("event=puller_not_made pod={} why={}", wanted.name,
                               glidepod::quoted(answer.error().message()));
                  refused_[wanted.name] = {wanted.name,
                                           {},
                                           wanted.key.node,
                                           wanted.key.image,
                                           kube::PulledImage::State::lost,
                                           "NotMade",
                                           answer.error().message()};
                }
                soon();
              });
}

void Pullers::remove(const Puller& puller) {
  busy_.insert(puller.name);
  const Json options = {
      {"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"preconditions", {{"uid", puller.uid}}}};
  calls_.call({.method = "DELETE",
               .path = fmt::format("/api/v1/namespaces/{}/pods/{}", settings_.name_space, puller.name),
               .body = json_text(options)},
              [this, name = puller.name](const Result<std::string>& answer) {
                busy_.erase(name);
                // The watch tells of its end.
                const auto gone = pullers_.find(name);
                if (answer && gone != pullers_.end()) gone->second.ending = true;
                if (answer || kube::Failure::of(answer.error()).status == 404) return;
                spdlog::info("event=puller_not_removed pod={} why={}", name,
                             glidepod::quoted(answer.error().message()));
              });
}

void Pullers::annotate(const PullingPilot& pilot, const std::string& text) {
  busy_.insert(pilot.name);
  const Json patch = {{"metadata", {{"uid", pilot.uid}, {"annotations", {{kube::k_pulled_images, text}}}}}};
  calls_.call({.method = "PATCH",
               .path = fmt::format("/api/v1/namespaces/{}/pods/{}?fieldManager=glidepod-provisioner",
                                   settings_.name_space, pilot.name),
               .body = json_text(patch),
               .content_type = "application/merge-patch+json"},
              [this, name = pilot.name](const Result<std::string>& answer) {
                busy_.erase(name);
                if (answer) return told(name, json_from(answer.value()));
                spdlog::warn("event=pilot_not_told pod={} why={}", name,
                             glidepod::quoted(answer.error().message()));
              });
}

// As the API has it now, unless the watch is ahead of this.
void Pullers::told(const std::string& name, const Json& pod) {
  const auto pilot = pilots_.find(name);
  auto now = read_pulling_pilot(pod);
  if (pilot != pilots_.end() && now && now->version > pilot->second.version) pilot->second = *std::move(now);
  soon();
}

}  // namespace glidepod::provisioner
