#include "provisioner/service/service.hpp"

#include <malloc.h>
#include <signal.h>

#include <algorithm>
#include <iterator>

#include "lib/base/file.hpp"
#include "lib/base/file_watch.hpp"
#include "lib/base/json.hpp"
#include "lib/base/log.hpp"
#include "lib/base/text.hpp"
#include "lib/base/time.hpp"
#include "lib/base/workers.hpp"
#include "lib/http/status_server.hpp"
#include "provisioner/page/endpoint.hpp"
#include "provisioner/service/clock.hpp"
#include "provisioner/service/decision_log.hpp"
#include "provisioner/service/drain_list.hpp"
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
constexpr std::size_t k_most_problems = 1000;  // in the log, of one cycle

// The loop of `run`.
class Service {
 public:
  Service(Loop& loop, const ServiceOptions& options, Configuration configuration)
      : loop_(loop), options_(options), configuration_(std::move(configuration)) {}

  Result<void> start() {
    inbox_ = TRY(Inbox::create(loop_));
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
      set_up_cycle();
      recall(leaders_memory(loop_, *parts_, options_));
      lead(true);
      return {};
    }
    lease_client_ = TRY(kube::Client::create(loop_, TRY(endpoint_of(options_))));
    lease_client_->observe(metrics_.api.observer());
    leader_ = std::make_unique<Leader>(*lease_client_, TRY(lease_of(options_)),
                                       [this](bool leads) { lead(leads); });
    set_up_cycle();
    leader_->on_drained([this] { drained_changed(); });
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
      // What is under way goes on from what this one has learnt, and nothing comes of it.
      recalls_ = leader_ != nullptr;
      if (phase_ == Phase::idle) begin_in(Milliseconds(0));
      return;
    }
    // What it has learnt of pods is kept, what it has seen of them is not: others may make some from now on.
    parts_->cycle->wind_up();
    stale_ = true;
    metrics_.forget_cycle();
    saw_all_ = false;
  }

  // An operator does not wait for the next cycle.
  void drained_changed() {
    if (leads_ && phase_ == Phase::idle) begin_in(Milliseconds(0));
  }

  // What cannot be read changes nothing.
  void read_drained() {
    if (!leader_) return;
    auto list = drained_in(leader_->lease());
    if (!list)
      return spdlog::error("event=drained_not_read why={}", glidepod::quoted(list.error().message()));
    const auto says = [](const char* event, const Drained& entry) {
      spdlog::warn("event={} kind={} name={} mode={} reason={}", event, to_string(entry.kind),
                   glidepod::quoted(entry.name), to_string(entry.mode), glidepod::quoted(entry.reason));
    };
    for (const auto& entry : list.value()) {
      const auto* known = drained(drained_, entry.kind, entry.name);
      if (!known || known->mode != entry.mode) says("drained", entry);
    }
    for (const auto& entry : drained_)
      if (!drained(list.value(), entry.kind, entry.name)) says("undrained", entry);
    drained_ = list.value();
    parts_->cycle->drain(std::move(list).value());
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
    if (std::exchange(recalls_, false)) recall(memory_in(leader_->lease()));
    read_drained();
    phase_ = Phase::looking;
    began_ = std::chrono::steady_clock::now();
    const auto now = read_clock();
    looked_ = wall_clock();
    parts_->cycle->observe(now, [this](Observation seen) { observed(std::move(seen)); });
  }

  // What one cycle is about, until it has ended.
  struct Turn {
    Observation seen;
    Plan plan;
    Applied applied;
    std::vector<PodEvent> events;
    Json memory;
    std::string status;
    std::vector<std::string> problems;
    Result<void> written;
  };
  using TurnPtr = std::shared_ptr<Turn>;

  void observed(Observation seen) {
    if (stopping_) return;
    if (!leads_) return idle();
    if (!options_.tokens.empty()) {
      auto ends = ends_of_tokens(options_.token_copies, looked_);
      std::ranges::move(ends.problems, std::back_inserter(seen.supply.problems));
      metrics_.token_ends = ends.first;
    }
    const auto turn = std::make_shared<Turn>();
    turn->seen = std::move(seen);
    metrics_.begin_cycle();
    aside(
        [this, turn, may_act = may_act()] {
          turn->plan = parts_->cycle->decide(turn->seen);
          metrics_.prepare(turn->seen, turn->plan);
          decision_log_.decided(turn->plan);
          if (may_act && !turn->plan.blind) turn->events = events_.saw(turn->seen, naming_);
        },
        [this, turn] { decided(turn); });
  }

  void decided(const TurnPtr& turn) {
    if (stopping_) return;
    if (!leads_) return idle();
    metrics_.show(turn->plan);
    for (const auto& event : turn->events)
      if (may_act()) parts_->backend->tell(event, looked_);
    phase_ = Phase::applying;
    parts_->cycle->apply(turn->plan, turn->seen.at, [this, turn](Applied applied) {
      turn->applied = std::move(applied);
      tell(turn);
    });
  }

  void tell(const TurnPtr& turn) {
    const auto& settings = configuration_.loaded.settings;
    // Its readers have no other clock than the system's.
    const Json more = {{"time", time_text(looked_)},
                       {"unix_time", looked_.time_since_epoch().count()},
                       {"sleep_time", settings.sleep_time.count()}};
    aside([this, turn, more, file = settings.policy.status_file] { write_status(*turn, more, file); },
          [this, turn] { ended(*turn); });
  }

  void write_status(Turn& turn, Json more, const std::string& file) {
    const auto at = turn.seen.at;
    turn.memory = parts_->cycle->memory(at);
    turn.problems = problems_of(turn.seen, &turn.applied);
    if (!file.empty() || options_.serve_status) {
      more["memory"] = turn.memory;
      turn.status = report_text(turn.seen, turn.plan, &turn.applied, naming_, k_status_size, more) + '\n';
    }
    if (!file.empty()) turn.written = replace_file(file, turn.status, 0644);
    // What took long to make takes long to free.
    turn.seen = {.at = at};
  }

  void ended(Turn& turn) {
    const auto& plan = turn.plan;
    const auto& applied = turn.applied;
    if (options_.serve_status) {
      page_.decided(plan, turn.seen.at);
      page_.reported(std::move(turn.status));
    }
    if (!configuration_.loaded.settings.policy.status_file.empty())
      metrics_.status_written(turn.written.ok());
    if (!turn.written)
      spdlog::warn("event=status_not_written why={}", glidepod::quoted(turn.written.error().message()));
    // Where another one has led meanwhile, its memory is the newer.
    if (!stale_) {
      if (leader_) leader_->remember(json_text(turn.memory));
      last_cycle_ = turn.seen.at;
    }
    tell_problems(turn.problems);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began_;
    metrics_.applied(plan, applied, wall_clock(), took.count());
    saw_all_ = !plan.blind;
    spdlog::info("event=cycle groups={} submit={} created={} removed={} took_s={:.2f}", plan.decisions.size(),
                 plan.submissions(), applied.created, applied.removed, took.count());
    if (!leads_) {
      metrics_.forget_cycle();
      saw_all_ = false;
    }
    idle();
  }

  static void tell_problems(const std::vector<std::string>& problems) {
    for (std::size_t i = 0; i < std::min(problems.size(), k_most_problems); ++i)
      spdlog::warn("event=problem what={}", glidepod::quoted(problems[i]));
    if (problems.size() > k_most_problems)
      spdlog::warn("event=problems more={}", problems.size() - k_most_problems);
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
    set_up_cycle();
    naming_ = std::move(naming).value();
    return true;
  }

  // By the clock, before each action: a process that stood still for a while finds its timers late.
  bool may_act() const { return !leader_ || leader_->leads(); }

  void set_up_cycle() {
    parts_->cycle->act_while([this] { return may_act(); });
    parts_->cycle->work_aside([this](std::function<void()> work, std::function<void()> then) {
      aside(std::move(work), std::move(then));
    });
  }

  // The lease, probes and signals do not wait for what takes long for many pods and groups. One thread, one
  // thing at a time: while it works a cycle is under way, which owns what the work is about.
  void aside(std::function<void()> work, std::function<void()> then) {
    worker_.run([this, work = std::move(work), then = std::move(then)]() mutable {
      work();
      inbox_->post(std::move(then));
    });
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
  DrainList drained_;  // as of the last cycle
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
  bool recalls_ = false;  // goes on from what the lease remembers, as soon as nothing is under way
  std::unique_ptr<Inbox> inbox_;
  Workers worker_{1};  // the first to go: it may be at work on the others
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
  auto out_of_use = leaders_drained(loop, *parts, options);
  if (out_of_use) parts->cycle->drain(out_of_use.value());
  parts->cycle->observe(wall_clock(), [&](const Observation& seen) {
    result = report(seen, parts->cycle->decide(seen), nullptr);
    loop.stop();
  });
  TRY(loop.run());
  if (!out_of_use) result["problems"].push_back("what is drained: " + out_of_use.error().message());
  if (!recalled) result["problems"].push_back("memory of the leader: " + recalled.error().message());
  for (const auto& warning : configuration.loaded.warnings)
    result["problems"].push_back("settings: " + warning.text);
  return result;
}

Result<void> serve(const ServiceOptions& options) {
  // What one thread frees the other uses: with an arena for each, a large pool takes a sixth more memory.
  ::mallopt(M_ARENA_MAX, 1);
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
