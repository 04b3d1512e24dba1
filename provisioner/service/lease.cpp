#include "provisioner/service/lease.hpp"

#include <time.h>

#include <algorithm>

#include "lib/base/json.hpp"
#include "lib/base/log.hpp"
#include "lib/base/time.hpp"
#include "provisioner/service/drain_list.hpp"
#include "provisioner/service/memory.hpp"

namespace glidepod::provisioner {

namespace {

constexpr Milliseconds k_attempt_limit{5'000};
constexpr Milliseconds k_release_limit{2'000};

template <typename T>
T spec_value(const Json& lease, const char* key, T otherwise) {
  const auto spec = lease.is_object() ? lease.find("spec") : lease.end();
  if (!lease.is_object() || spec == lease.end() || !spec->is_object()) return otherwise;
  const auto found = spec->find(key);
  if (found == spec->end()) return otherwise;
  if constexpr (std::is_same_v<T, std::string>)
    return found->is_string() ? found->template get<T>() : otherwise;
  else
    return found->is_number_integer() ? found->template get<T>() : otherwise;
}

SteadyTime now() {
  return std::chrono::steady_clock::now();
}

}  // namespace

LeaseMove judge_lease(const Json& lease, const std::string& identity, Milliseconds unchanged) {
  const auto holder = spec_value<std::string>(lease, "holderIdentity", "");
  if (holder == identity) return LeaseMove::renew;
  if (holder.empty()) return LeaseMove::take;
  const auto duration = std::chrono::seconds(spec_value<std::int64_t>(lease, "leaseDurationSeconds", 0));
  return unchanged > duration ? LeaseMove::take : LeaseMove::wait;
}

Json renewed_lease(const Json& before, const LeaseOptions& options, const std::string& identity,
                   std::chrono::system_clock::time_point now, const std::string& memory) {
  Json lease = before.is_object()
                   ? before
                   : Json{{"apiVersion", "coordination.k8s.io/v1"},
                          {"kind", "Lease"},
                          {"metadata", {{"name", options.name}, {"namespace", options.name_space}}}};
  if (!memory.empty()) {
    auto& annotations = lease["metadata"]["annotations"];
    if (!annotations.is_object()) annotations = Json::object();
    annotations[k_memory_annotation] = memory;
  }
  const auto old = spec_value<std::string>(before, "holderIdentity", "");
  const auto transitions = spec_value<std::int64_t>(before, "leaseTransitions", 0);
  if (!lease["spec"].is_object()) lease["spec"] = Json::object();
  auto& spec = lease["spec"];
  spec["holderIdentity"] = identity;
  spec["leaseDurationSeconds"] = identity.empty() ? 1 : options.duration.count();
  spec["renewTime"] = time_text(now, Precision::microseconds);
  if (old == identity || identity.empty()) return lease;
  spec["acquireTime"] = spec["renewTime"];
  spec["leaseTransitions"] = before.is_object() ? transitions + 1 : 0;
  return lease;
}

Leader::Leader(kube::Client& client, LeaseOptions options, std::function<void(bool)> on_change)
    : client_(client), options_(std::move(options)), on_change_(std::move(on_change)) {}

Leader::~Leader() {
  client_.loop().cancel(timer_);
  client_.loop().cancel(loss_);
}

std::string Leader::path(bool named) const {
  return fmt::format("/apis/coordination.k8s.io/v1/namespaces/{}/leases{}{}", options_.name_space,
                     named ? "/" : "", named ? options_.name : "");
}

std::chrono::nanoseconds LeaseOptions::boot_time() {
  timespec time{};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

bool Leader::leads() const {
  return leads_ && options_.clock() < renewed_ + options_.give_up;
}

bool Leader::knows() const {
  return lease_.is_object() && now() - seen_ < options_.duration;
}

void Leader::start() {
  tick();
}

void Leader::tick() {
  timer_ = 0;
  if (leads_)
    write(renewed_lease(lease_, options_, options_.identity, std::chrono::system_clock::now(), memory_));
  else
    look();
}

// One attempt each: it is repeated by the period, from what is true then.
void Leader::send(std::string method, std::string path, std::string body, kube::AnswerHandler handler) {
  call_ = client_.call({.method = std::move(method),
                        .path = std::move(path),
                        .body = std::move(body),
                        .time_limit = ending_ ? k_release_limit : k_attempt_limit,
                        .repeat = http::Plan::Repeat::never},
                       std::move(handler));
}

void Leader::look() {
  send("GET", path(true), {}, [this](const Result<std::string>& answer) {
    if (answer) return seen(answer.value());
    const auto failure = kube::Failure::of(answer.error());
    if (failure.status == 404)
      return write(renewed_lease(Json(), options_, options_.identity, std::chrono::system_clock::now()));
    failed(failure);
  });
}

void Leader::seen(const std::string& body) {
  auto lease = json_from(body);
  if (!lease.is_object())
    return failed({kube::Failure::Kind::nonsense, 200, {}, "a lease that is no object", {}});
  seen_ = now();
  last_failure_.clear();
  if (lease != lease_) changed_ = seen_;
  lease_ = std::move(lease);
  look_at_drained();
  const auto holder = spec_value<std::string>(lease_, "holderIdentity", "");
  if (holder != holder_) spdlog::info("event=lease holder={}", glidepod::quoted(holder));
  holder_ = holder;
  if (leads_ && holder != options_.identity) {
    client_.loop().cancel(std::exchange(loss_, 0));
    set_leads(false);
  }
  const auto unchanged = std::chrono::duration_cast<Milliseconds>(seen_ - changed_);
  if (judge_lease(lease_, options_.identity, unchanged) != LeaseMove::wait)
    return write(renewed_lease(lease_, options_, options_.identity, std::chrono::system_clock::now()));
  timer_ = client_.loop().after(options_.period, [this] { tick(); });
}

void Leader::write(const Json& lease) {
  const bool fresh = !lease["metadata"].contains("resourceVersion");
  // What the API has seen of it decides, not when its answer came.
  send(fresh ? "POST" : "PUT", path(!fresh), json_text(lease),
       [this, asked = options_.clock()](const Result<std::string>& answer) {
         if (answer) return mine(answer.value(), asked);
         failed(kube::Failure::of(answer.error()));
       });
}

void Leader::mine(const std::string& body, std::chrono::nanoseconds asked) {
  auto lease = json_from(body);
  if (!lease.is_object())
    return failed({kube::Failure::Kind::nonsense, 200, {}, "a lease that is no object", {}});
  lease_ = std::move(lease);
  look_at_drained();
  last_failure_.clear();
  seen_ = changed_ = now();
  renewed_ = asked;
  holder_ = options_.identity;
  client_.loop().cancel(loss_);
  const auto left = std::chrono::ceil<Milliseconds>(asked + options_.give_up - options_.clock());
  loss_ = client_.loop().after(std::max(left, Milliseconds(0)), [this] {
    loss_ = 0;
    set_leads(false);
  });
  timer_ = client_.loop().after(options_.period, [this] { tick(); });
  set_leads(true);
}

void Leader::failed(const kube::Failure& failure) {
  const auto why = failure.to_string();
  // It is not as we saw it last: another one was faster, or an attempt of ours that got no answer.
  if (failure.status == 409 && leads_) return look();
  if (failure.status != 409 && std::exchange(last_failure_, why) != why)
    spdlog::warn("event=lease_not_{} why={}", leads_ ? "renewed" : "read", glidepod::quoted(why));
  timer_ = client_.loop().after(options_.period, [this] { tick(); });
}

void Leader::set_leads(bool leads) {
  if (ending_ || std::exchange(leads_, leads) == leads) return;
  // Another one may remember more by the time that it leads again.
  if (!leads) memory_.clear();
  spdlog::info("event=leader leads={} identity={}", leads, glidepod::quoted(options_.identity));
  on_change_(leads);
}

void Leader::look_at_drained() {
  auto text = annotation_of(lease_, k_drained_annotation);
  if (std::exchange(drained_, text) != text && on_drained_) on_drained_();
}

void Leader::release(std::function<void()> done) {
  ending_ = true;
  client_.loop().cancel(std::exchange(timer_, 0));
  client_.loop().cancel(std::exchange(loss_, 0));
  const bool ours = std::exchange(leads_, false);
  call_.reset();
  if (!ours) {
    timer_ = client_.loop().after(Milliseconds(0), std::move(done));
    return;
  }
  released_ = std::move(done);
  give_back(true);
}

void Leader::give_back(bool again) {
  const auto lease = renewed_lease(lease_, options_, {}, std::chrono::system_clock::now(), memory_);
  send("PUT", path(true), json_text(lease), [this, again](const Result<std::string>& answer) {
    if (!answer && kube::Failure::of(answer.error()).status == 409 && again) {
      // A renewal that was under way has changed it, or it is another's by now.
      return send("GET", path(true), {}, [this](const Result<std::string>& now) {
        lease_ = now ? json_from(now.value()) : Json();
        if (spec_value<std::string>(lease_, "holderIdentity", "") == options_.identity)
          return give_back(false);
        const auto call = std::move(released_);
        call();
      });
    }
    if (!answer) spdlog::warn("event=lease_not_released why={}", glidepod::quoted(answer.error().message()));
    const auto call = std::move(released_);
    call();
  });
}

}  // namespace glidepod::provisioner
