#include "provisioner/service.hpp"

#include <signal.h>
#include <unistd.h>

#include "lib/base/file.hpp"
#include "lib/base/log.hpp"
#include "lib/base/text.hpp"
#include "provisioner/kubernetes.hpp"
#include "provisioner/lancium.hpp"
#include "provisioner/report.hpp"

namespace glidepod::provisioner {

using Json = nlohmann::json;

namespace {

List files_of(const ServiceOptions& options) {
  if (!options.files.empty()) return options.files;
  List result;
  for (const auto& file : default_files(options.backend))
    if (::access(file.c_str(), F_OK) == 0) result.push_back(file);
  return result;
}

Policy make_policy(const Settings& settings, const PilotSettings& pilots, const std::string& image) {
  Policy policy;
  policy.image = image;
  policy.max_pods_per_cluster = pilots.max_pods_per_cluster;
  policy.max_submit_pods_per_cluster = pilots.max_submit_pods_per_cluster;
  policy.settings = settings.policy;
  return policy;
}

// All that a cycle needs, made from one reading of the settings. Its parts point at each other: it does not
// move.
struct Parts {
  condor::ChildRunner runner;
  std::unique_ptr<kube::Client> client;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<CondorDemand> demand;
  std::unique_ptr<Cycle> cycle;
  LoadedSettings loaded;

  explicit Parts(Loop& loop) : runner(loop) {}
};

constexpr const char* k_service_account = "/var/run/secrets/kubernetes.io/serviceaccount";

Result<void> make_kubernetes(Loop& loop, const ServiceOptions& options, Parts& parts,
                             KubernetesSettings& settings) {
  const bool inside = options.api.url.empty() && options.api.unix_socket.empty();
  parts.client = TRY(kube::Client::create(
      loop, inside ? TRY(kube::endpoint_in_pod(k_service_account, environ)) : options.api));
  if (settings.name_space.empty() && inside)
    settings.name_space = trim(TRY(read_file(std::string(k_service_account) + "/namespace")));
  if (settings.name_space.empty()) return error("[k8s] namespace is not set");
  Json pod_template;
  if (!settings.pod_template.empty()) {
    pod_template = Json::parse(TRY(read_file(settings.pod_template)), nullptr, false);
    if (pod_template.is_discarded()) return error("{} is no JSON", settings.pod_template);
  }
  auto maker = TRY(
      PodMaker::create(settings, pod_template.is_null() ? nullptr : &pod_template).in(settings.pod_template));
  parts.backend = std::make_unique<Kubernetes>(*parts.client, settings, std::move(maker));
  return {};
}

Result<std::unique_ptr<Parts>> make_parts(Loop& loop, const ServiceOptions& options) {
  auto parts = std::make_unique<Parts>(loop);
  parts->loaded = TRY(load_settings(files_of(options)));
  auto& settings = parts->loaded.settings;
  const bool lancium = options.backend == BackendKind::lancium;
  if (lancium)
    parts->backend = TRY(Lancium::create(parts->runner, settings.lancium));
  else
    TRY(make_kubernetes(loop, options, *parts, settings.kubernetes));
  const PilotSettings& pilots =
      lancium ? static_cast<const PilotSettings&>(settings.lancium) : settings.kubernetes;
  auto policy = make_policy(settings, pilots, parts->backend->image());
  policy.finished_ttl = settings.kubernetes.job_ttl;
  if (lancium) {
    policy.sightings_before_removal = settings.lancium.sightings_before_removal;
    policy.removals_per_cycle = settings.lancium.removals_per_cycle;
  }
  parts->demand = std::make_unique<CondorDemand>(
      parts->runner, settings.htcondor, settings.policy, settings.kubernetes.name_space,
      lancium ? CondorDemand::Namespace::ignored : CondorDemand::Namespace::matched);
  parts->cycle = std::make_unique<Cycle>(*parts->demand, parts->runner, *parts->backend, settings.htcondor,
                                         pilots.app_name, std::move(policy));
  return parts;
}

Time wall_clock() {
  return std::chrono::floor<Seconds>(std::chrono::system_clock::now());
}

void log_decisions(const Plan& plan) {
  if (!plan.blind.empty())
    return spdlog::warn("blind, nothing is decided why={}", glidepod::quoted(plan.blind));
  for (const auto& d : plan.decisions) {
    const bool quiet = d.verdict == Decision::Verdict::enough || d.verdict == Decision::Verdict::no_demand;
    spdlog::log(quiet ? spdlog::level::debug : spdlog::level::info,
                "decision group={} verdict={} submit={} idle={} waiting={} unmatched={} claimed={} broken={} "
                "reason={}",
                glidepod::quoted(d.group.name()), glidepod::quoted(to_string(d.verdict)), d.submit,
                d.demand.idle, d.supply.waiting, d.supply.unmatched, d.supply.claimed, d.supply.broken,
                glidepod::quoted(d.reason()));
  }
}

// The loop of `run`.
class Service {
 public:
  Service(Loop& loop, const ServiceOptions& options, std::unique_ptr<Parts> parts)
      : loop_(loop), options_(options), parts_(std::move(parts)) {}

  void begin() {
    timer_ = 0;
    if (std::exchange(reload_, false)) read_settings();
    busy_ = true;
    parts_->cycle->observe(wall_clock(), [this](Observation seen) { decided(std::move(seen)); });
  }
  void stop() {
    stopping_ = true;
    parts_->cycle->wind_up();
    if (!busy_) loop_.stop();
  }
  // Settings are read between two cycles, by a call from the loop itself: what they replace may be running.
  void reload() {
    reload_ = true;
    if (!busy_) begin_in(Milliseconds(0));
  }

 private:
  void decided(Observation seen) {
    auto plan = std::make_shared<Plan>(parts_->cycle->decide(seen));
    auto shared = std::make_shared<Observation>(std::move(seen));
    log_decisions(*plan);
    parts_->cycle->apply(*plan, shared->at,
                         [this, plan, shared](const Applied& applied) { ended(*shared, *plan, applied); });
  }

  void ended(const Observation& seen, const Plan& plan, const Applied& applied) {
    auto text = report(seen, plan, &applied);
    const auto& settings = parts_->loaded.settings;
    text["sleep_time"] = settings.sleep_time.count();
    for (const auto& problem : text["problems"])
      spdlog::warn("problem what={}", glidepod::quoted(problem.get<std::string>()));
    const auto took = wall_clock() - seen.at;
    spdlog::info("cycle groups={} submit={} created={} removed={} took_s={}", plan.decisions.size(),
                 plan.submissions(), applied.created, applied.removed, took.count());
    if (!settings.policy.status_file.empty()) {
      // Texts from outside may be anything; a status must be written all the same.
      const auto dumped = text.dump(2, ' ', false, Json::error_handler_t::replace);
      if (const auto written = replace_file(settings.policy.status_file, dumped + "\n", 0644); !written)
        spdlog::warn("status not written why={}", glidepod::quoted(written.error().message()));
    }
    busy_ = false;
    if (stopping_) return loop_.stop();
    begin_in(reload_ ? Milliseconds(0) : std::chrono::duration_cast<Milliseconds>(settings.sleep_time));
  }

  void begin_in(Milliseconds delay) {
    if (timer_ != 0) loop_.cancel(timer_);
    timer_ = loop_.after(delay, [this] { begin(); });
  }

  void read_settings() {
    auto fresh = make_parts(loop_, options_);
    if (!fresh) {
      spdlog::error("settings not used, the old ones stay why={}", glidepod::quoted(fresh.error().message()));
      return;
    }
    for (const auto& warning : (*fresh)->loaded.warnings)
      spdlog::warn("settings what={}", glidepod::quoted(warning.text));
    for (const auto& change : changes(parts_->loaded, (*fresh)->loaded))
      spdlog::info("settings change={}", glidepod::quoted(change));
    fresh.value()->cycle->inherit(*parts_->cycle);
    parts_ = std::move(fresh).value();
  }

  Loop& loop_;
  ServiceOptions options_;
  std::unique_ptr<Parts> parts_;
  Loop::TimerId timer_ = 0;
  bool busy_ = false, stopping_ = false, reload_ = false;
};

}  // namespace

Result<Json> plan_once(const ServiceOptions& options) {
  auto loop = TRY(Loop::create());
  auto parts = TRY(make_parts(loop, options));
  Json result;
  parts->cycle->observe(wall_clock(), [&](const Observation& seen) {
    result = report(seen, parts->cycle->decide(seen), nullptr);
    loop.stop();
  });
  TRY(loop.run());
  for (const auto& warning : parts->loaded.warnings)
    result["problems"].push_back("settings: " + warning.text);
  return result;
}

Result<void> serve(const ServiceOptions& options) {
  auto loop = TRY(Loop::create());
  auto parts = TRY(make_parts(loop, options));
  for (const auto& warning : parts->loaded.warnings)
    spdlog::warn("settings what={}", glidepod::quoted(warning.text));
  for (const auto& line : parts->loaded.written) spdlog::info("settings {}", glidepod::quoted(line));
  Service service(loop, options, std::move(parts));
  TRY(loop.on_signals({SIGTERM, SIGINT, SIGHUP}, [&service](const signalfd_siginfo& signal) {
    spdlog::info("signal number={}", signal.ssi_signo);
    if (signal.ssi_signo == SIGHUP) return service.reload();
    service.stop();
  }));
  service.begin();
  return loop.run();
}

}  // namespace glidepod::provisioner
