#include "provisioner/service/service.hpp"

#include <signal.h>

#include "lib/base/file.hpp"
#include "lib/base/json.hpp"
#include "lib/base/log.hpp"
#include "lib/base/text.hpp"
#include "lib/base/time.hpp"
#include "lib/http/status_server.hpp"
#include "provisioner/page/endpoint.hpp"
#include "provisioner/service/clock.hpp"
#include "provisioner/service/decision_log.hpp"
#include "provisioner/service/file_watch.hpp"
#include "provisioner/service/lease.hpp"
#include "provisioner/service/metrics.hpp"
#include "provisioner/service/parts.hpp"
#include "provisioner/service/pod_events.hpp"
#include "provisioner/service/report.hpp"
#include "provisioner/service/tokens.hpp"

namespace glidepod::provisioner {

namespace {

Time wall_clock() {
  return std::chrono::floor<Seconds>(std::chrono::system_clock::now());
}

void log_warnings(const LoadedSettings& loaded) {
  for (const auto& warning : loaded.warnings)
    spdlog::warn("event=settings what={}", glidepod::quoted(warning.text));
}

// Its volume has 8 MiB of memory (manifests/provisioner), and holds the next one beside the last.
constexpr std::size_t k_status_size = std::size_t{3} << 20;

// The loop of `run`.
class Service {
 public:
  Service(Loop& loop, const ServiceOptions& options, Configuration configuration)
      : loop_(loop), options_(options), configuration_(std::move(configuration)) {}

  Result<void> start() {
    naming_ = TRY(owner_naming(configuration_.loaded.settings.policy, owner_key_));
    parts_ =
        TRY(Parts::make(loop_, options_, configuration_, PodFeed::Mode::followed, metrics_.api.observer()));
    files_ = TRY(FileWatch::create(loop_, [this] { files_changed(); }));
    watch_files();
    TRY(follow_tokens());
    if (!options_.listen.empty()) {
      endpoint_ = TRY(http::StatusServer::create(loop_, options_.listen,
                                                 [this](const std::string& path) { return answer(path); }));
      spdlog::info("event=listening port={}", endpoint_->port());
    }
    if (options_.lease.empty()) {
      recall(leaders_memory(loop_, *parts_, options_));
      lead(true);
      return {};
    }
    lease_client_ = TRY(kube::Client::create(loop_, TRY(endpoint_of(options_))));
    lease_client_->observe(metrics_.api.observer());
    leader_ = std::make_unique<Leader>(*lease_client_, TRY(lease_of(options_)),
                                       [this](bool leads) { lead(leads); });
    guard_actions();
    leader_->start();
    return {};
  }

  void reload() {
    reload_ = true;
    if (phase_ == Phase::idle) begin_in(Milliseconds(0));
  }

  void stop() {
    if (std::exchange(stopping_, true)) return;
    parts_->cycle->wind_up();
    // Nothing was done yet that would have to be waited for.
    if (phase_ != Phase::applying) end();
  }

 private:
  enum class Phase : std::uint8_t { idle, looking, applying };

  void lead(bool leads) {
    leads_ = leads;
    metrics_.leads(leads);
    if (leads) {
      if (leader_) recall(memory_in(leader_->lease()));
      if (phase_ == Phase::idle) begin_in(Milliseconds(0));
      return;
    }
    // What it has learnt of pods is kept, what it has seen of them is not: others may make some from now on.
    parts_->cycle->wind_up();
    stale_ = true;
    metrics_.forget_cycle();
    saw_all_ = false;
  }

  // What was learnt by whoever led last, unless that was this one: it has not forgotten anything.
  void recall(const Result<Json>& memory) {
    if (memory && memory->is_null()) return;
    if (memory && last_cycle_ != Time{} && time_of_memory(memory.value()) <= last_cycle_) return;
    const auto used = memory ? parts_->cycle->recall(memory.value(), read_clock()) : memory.error();
    if (used) return spdlog::info("event=memory_used");
    spdlog::warn("event=memory_not_used why={}", glidepod::quoted(used.error().message()));
  }

  Time read_clock() {
    const auto before = clock_.time();
    const auto reading = clock_.read(std::chrono::system_clock::now(), std::chrono::steady_clock::now());
    if (reading.stepped != Seconds(0))
      spdlog::warn("event=clock_stepped by_s={} anew={}", reading.stepped.count(), reading.anew);
    // What lies before now and what is not longer than the settings allow is gone on with.
    if (reading.anew) {
      const auto used = parts_->cycle->recall(parts_->cycle->memory(before), reading.time);
      if (!used) spdlog::warn("event=memory_not_used why={}", glidepod::quoted(used.error().message()));
    }
    return reading.time;
  }

  // Parts are replaced here only, from the loop itself: they may be what is running otherwise.
  void begin() {
    timer_ = 0;
    if (stopping_) return;
    if (std::exchange(reload_, false)) read_settings();
    if (!leads_) return;
    if (stale_ && !renew_parts(configuration_)) return begin_in(configuration_.loaded.settings.sleep_time);
    stale_ = false;
    phase_ = Phase::looking;
    began_ = std::chrono::steady_clock::now();
    const auto now = read_clock();
    looked_ = wall_clock();
    parts_->cycle->observe(now, [this](Observation seen) { decided(std::move(seen)); });
  }

  void decided(Observation seen) {
    if (!leads_) return idle();
    if (!options_.tokens.empty())
      for (auto& expired : expired_tokens(options_.token_copies, looked_))
        seen.supply.problems.push_back(std::move(expired));
    auto plan = std::make_shared<Plan>(parts_->cycle->decide(seen));
    auto shared = std::make_shared<Observation>(std::move(seen));
    decision_log_.decided(*plan);
    metrics_.decided(*shared, *plan);
    if (!plan->blind && (!leader_ || leader_->leads()))
      for (const auto& event : events_.saw(*shared, naming_)) parts_->backend->tell(event, looked_);
    phase_ = Phase::applying;
    parts_->cycle->apply(*plan, shared->at,
                         [this, plan, shared](const Applied& applied) { ended(*shared, *plan, applied); });
  }

  void ended(const Observation& seen, const Plan& plan, const Applied& applied) {
    if (options_.serve_status) page_.decided(plan, seen.at);
    auto text = report(seen, plan, &applied, naming_, k_status_size);
    // Its readers have no other clock than the system's.
    text["time"] = time_text(looked_);
    text["unix_time"] = looked_.time_since_epoch().count();
    const auto& settings = configuration_.loaded.settings;
    text["sleep_time"] = settings.sleep_time.count();
    text["memory"] = parts_->cycle->memory(seen.at);
    if (leader_) leader_->remember(json_text(text["memory"]));
    last_cycle_ = seen.at;
    for (const auto& problem : text["problems"])
      spdlog::warn("event=problem what={}", glidepod::quoted(problem.get<std::string>()));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began_;
    metrics_.applied(plan, applied, wall_clock(), took.count());
    saw_all_ = !plan.blind;
    spdlog::info("event=cycle groups={} submit={} created={} removed={} took_s={:.2f}", plan.decisions.size(),
                 plan.submissions(), applied.created, applied.removed, took.count());
    write_status(text);
    if (!leads_) {
      metrics_.forget_cycle();
      saw_all_ = false;
    }
    idle();
  }

  void write_status(const Json& text) {
    const auto& file = configuration_.loaded.settings.policy.status_file;
    if (file.empty() && !options_.serve_status) return;
    // Texts from outside may be anything; a status must be written all the same.
    auto dumped = json_text(text) + '\n';
    if (options_.serve_status) page_.reported(dumped);
    if (file.empty()) return;
    if (const auto written = replace_file(file, dumped, 0644); !written)
      spdlog::warn("event=status_not_written why={}", glidepod::quoted(written.error().message()));
  }

  void idle() {
    phase_ = Phase::idle;
    if (stopping_) return end();
    const auto pause = configuration_.loaded.settings.sleep_time;
    // With the lease back already, the next cycle need not wait; without it, it begins with the lease.
    begin_in(reload_ || stale_ ? Milliseconds(0) : std::chrono::duration_cast<Milliseconds>(pause));
  }

  void begin_in(Milliseconds delay) {
    if (timer_ != 0) loop_.cancel(timer_);
    timer_ = loop_.after(delay, [this] { begin(); });
  }

  void end() {
    if (timer_ != 0) loop_.cancel(timer_);
    if (!leader_) return loop_.stop();
    leader_->release([this] { loop_.stop(); });
  }

  bool renew_parts(const Configuration& configuration) {
    auto naming = owner_naming(configuration.loaded.settings.policy, owner_key_);
    if (!naming) {
      spdlog::error("event=settings_not_used why={}", glidepod::quoted(naming.error().message()));
      return false;
    }
    auto fresh =
        Parts::make(loop_, options_, configuration, PodFeed::Mode::followed, metrics_.api.observer());
    if (!fresh) {
      spdlog::error("event=settings_not_used why={}", glidepod::quoted(fresh.error().message()));
      return false;
    }
    fresh.value()->demand->inherit(*parts_->demand);
    fresh.value()->cycle->inherit(*parts_->cycle);
    parts_ = std::move(fresh).value();
    guard_actions();
    naming_ = std::move(naming).value();
    return true;
  }

  // By the clock, before each of them: a process that stood still for a while finds its timers late.
  void guard_actions() {
    parts_->cycle->act_while([this] { return !leader_ || leader_->leads(); });
  }

  void read_settings() {
    auto fresh = read_configuration(options_);
    if (!fresh) spdlog::error("event=settings_not_used why={}", glidepod::quoted(fresh.error().message()));
    const bool good = fresh && renew_parts(fresh.value());
    metrics_.settings_read(good);
    if (!good) return;
    log_warnings(fresh->loaded);
    const auto all = changes(configuration_.loaded, fresh->loaded);
    for (const auto& change : all) spdlog::info("event=settings change={}", glidepod::quoted(change));
    if (all.empty()) spdlog::info("event=settings_unchanged");
    configuration_ = std::move(fresh).value();
    watch_files();
  }

  void watch_files() {
    fingerprint_ = configuration_.fingerprint;
    if (const auto watched = files_->set(configuration_.files); !watched)
      spdlog::warn("event=settings_not_watched why={}", glidepod::quoted(watched.error().message()));
  }

  // HTCondor's tools look at them whenever they are started.
  Result<void> follow_tokens() {
    if (options_.tokens.empty()) return {};
    TRY(copy_tokens(options_.tokens, options_.token_copies));
    token_watch_ = TRY(FileWatch::create(loop_, [this] {
      const auto copied = copy_tokens(options_.tokens, options_.token_copies);
      if (!copied) spdlog::warn("event=token_not_copied why={}", glidepod::quoted(copied.error().message()));
    }));
    return token_watch_->set({options_.tokens + "/any"});
  }

  // A file that was refused is told of once, not with each event in its folder.
  void files_changed() {
    const auto now = fingerprint_of(configuration_.files);
    if (std::exchange(fingerprint_, now) != now) reload();
  }

  http::StatusServer::Answer answer(std::string_view path) {
    if (path == "/healthz") return {200, "ok\n"};
    if (path == "/metrics") return {200, metrics_.text()};
    if (options_.serve_status)
      if (auto answer = page_.answer(path, leads_, wall_clock())) return *std::move(answer);
    if (path != "/readyz") return {404, "there are /healthz, /readyz and /metrics\n"};
    if (leads_)
      return saw_all_ ? http::StatusServer::Answer{200, "leads\n"}
                      : http::StatusServer::Answer{503, "blind\n"};
    if (leader_ && leader_->knows()) return {200, "stands by\n"};
    return {503, "the lease cannot be read\n"};
  }

  Loop& loop_;
  ServiceOptions options_;
  Configuration configuration_;
  Metrics metrics_;
  std::unique_ptr<Parts> parts_;
  std::unique_ptr<FileWatch> files_, token_watch_;
  std::unique_ptr<http::StatusServer> endpoint_;
  std::unique_ptr<kube::Client> lease_client_;
  std::unique_ptr<Leader> leader_;
  Loop::TimerId timer_ = 0;
  Clock clock_{std::chrono::system_clock::now(), std::chrono::steady_clock::now()};
  SteadyTime began_;
  Time looked_;  // by the system's clock
  Time last_cycle_;
  DecisionLog decision_log_;
  PodEvents events_;
  PageEndpoint page_;  // as --serve-status has it
  const std::string owner_key_ = random_hex(32);
  OwnerNaming naming_;
  std::uint64_t fingerprint_ = 0;
  Phase phase_ = Phase::idle;
  bool leads_ = false;
  bool stale_ = false;    // the lease was lost since parts_ was made
  bool saw_all_ = false;  // the last cycle was not blind
  bool stopping_ = false, reload_ = false;
};

}  // namespace

Result<Json> plan_once(const ServiceOptions& options) {
  auto loop = TRY(Loop::create());
  const auto configuration = TRY(read_configuration(options));
  auto parts = TRY(Parts::make(loop, options, configuration, PodFeed::Mode::once, {}));
  Json result;
  const auto memory = leaders_memory(loop, *parts, options);
  auto recalled = memory ? Result<void>() : memory.error();
  if (memory && !memory->is_null()) recalled = parts->cycle->recall(memory.value(), wall_clock());
  parts->cycle->observe(wall_clock(), [&](const Observation& seen) {
    result = report(seen, parts->cycle->decide(seen), nullptr);
    loop.stop();
  });
  TRY(loop.run());
  if (!recalled) result["problems"].push_back("memory of the leader: " + recalled.error().message());
  for (const auto& warning : configuration.loaded.warnings)
    result["problems"].push_back("settings: " + warning.text);
  return result;
}

Result<void> serve(const ServiceOptions& options) {
  auto loop = TRY(Loop::create());
  auto configuration = TRY(read_configuration(options));
  log_warnings(configuration.loaded);
  for (const auto& line : configuration.loaded.written)
    spdlog::info("event=settings what={}", glidepod::quoted(line));
  Service service(loop, options, std::move(configuration));
  TRY(loop.on_signals({SIGTERM, SIGINT, SIGHUP}, [&service](const signalfd_siginfo& signal) {
    spdlog::info("event=signal number={}", signal.ssi_signo);
    if (signal.ssi_signo == SIGHUP) return service.reload();
    service.stop();
  }));
  TRY(service.start());
  return loop.run();
}

}  // namespace glidepod::provisioner
