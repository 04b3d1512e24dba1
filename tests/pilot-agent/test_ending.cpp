#include "pilot-agent/core/ending.hpp"

#include <doctest/doctest.h>
#include <signal.h>

#include <functional>

using namespace glidepod;
using namespace glidepod::agent;
using namespace std::chrono_literals;
using Kind = Verdict::Kind;

namespace {

const ExitStatus k_kill = ExitStatus::signaled(SIGKILL);
const ExitStatus k_term = ExitStatus::signaled(SIGTERM);
constexpr Time k_exit{1000s};
constexpr Time k_later{2000s};

// The main process has ended at k_exit, and nothing was left of the job then.
EndFacts said(ExitStatus status, std::uint32_t oom_kills = 0) {
  EndFacts facts;
  facts.exited = wire::Exited{1, status, 0, oom_kills, 128L * 1024, 127L * 1024 + 1};
  facts.exited_at = k_exit;
  facts.ended_at = k_exit;
  facts.request_mib = 64;
  return facts;
}

// Glue has gone without a word at k_exit, and the status says so of the container.
EndFacts silent(const char* reason, int code) {
  EndFacts facts;
  facts.gone_at = k_exit;
  facts.container_by = k_exit + 10s;
  facts.container = kube::Termination{reason, "", code, 0, {}};
  facts.limit_kib = 128L * 1024;
  return facts;
}

EndFacts with(EndFacts facts, const std::function<void(EndFacts&)>& more) {
  more(facts);
  return facts;
}
EndFacts sent(ExitStatus status, int number, Time::duration before, std::uint32_t oom_kills = 0) {
  return with(said(status, oom_kills), [&](EndFacts& f) { f.sent[number] = k_exit - before; });
}
EndFacts goodbye(EndFacts facts, Time::duration after) {
  facts.goodbye_at = k_exit + after;
  return facts;
}
EndFacts gone(EndFacts facts, Time::duration after) {
  facts.gone_at = k_exit + after;
  facts.container_by = k_exit + after + 10s;
  return facts;
}
EndFacts shown(EndFacts facts, const char* reason, int code) {
  facts.container = kube::Termination{reason, "", code, 0, {}};
  return facts;
}
EndFacts cleaning(EndFacts facts, std::optional<Time::duration> until) {
  facts.ended_at = until ? std::optional(k_exit + *until) : std::nullopt;
  return facts;
}

}  // namespace

// The table of pilot-agent/README.md, row by row.
TEST_CASE("ending: what facts mean") {
  struct Row {
    const char* what;
    EndFacts facts;
    Kind kind;
  };
  const auto disk = [](EndFacts& facts) { facts.disk = {400'000, true, 131'072, 0}; };
  for (const Row& row : {
           // Its own.
           Row{"exit", said(ExitStatus::exited(7)), Kind::ended},
           Row{"exit after a goodbye", goodbye(said(ExitStatus::exited(0)), -5s), Kind::ended},
           Row{"exit, container OOMKilled", shown(gone(said(ExitStatus::exited(0)), 0s), "OOMKilled", 137),
               Kind::ended},
           Row{"SIGSEGV", said(ExitStatus::signaled(SIGSEGV), 3), Kind::ended},
           Row{"exit 7 after kills by the kernel", said(ExitStatus::exited(7), 3), Kind::ended},
           Row{"137 of a child", said(ExitStatus::exited(137)), Kind::ended},
           // A signal that was sent.
           Row{"SIGTERM, sent", sent(k_term, SIGTERM, 5s), Kind::ended},
           Row{"SIGTERM, sent, before its end is reaped", cleaning(sent(k_term, SIGTERM, 5s), std::nullopt),
               Kind::ended},
           Row{"SIGTERM, sent, glue lost", gone(sent(k_term, SIGTERM, 5s), 0s), Kind::ended},
           Row{"SIGKILL, sent", cleaning(sent(k_kill, SIGKILL, 5s), std::nullopt), Kind::ended},
           Row{"SIGKILL, sent, kills by the kernel", sent(k_kill, SIGKILL, 5s, 1), Kind::ended},
           Row{"SIGTERM, sent as long ago as a vacate lasts, goodbye",
               goodbye(sent(k_term, SIGTERM, 10min), 100ms), Kind::ended},
           // Not by another, too early or too late.
           Row{"SIGTERM, USR1 sent, goodbye", goodbye(sent(k_term, SIGUSR1, 1h), 100ms), Kind::lost},
           Row{"SIGTERM, sent an hour ago, goodbye", goodbye(sent(k_term, SIGTERM, 1h), 100ms), Kind::lost},
           Row{"SIGTERM, sent after it, goodbye", goodbye(sent(k_term, SIGTERM, -1s), 100ms), Kind::lost},
           Row{"SIGKILL, USR2 sent, kills by the kernel", sent(k_kill, SIGUSR2, 1h, 1), Kind::out_of_memory},
           // HTCondor vacates it.
           Row{"SIGTERM, USR1 sent after a goodbye", goodbye(sent(k_term, SIGUSR1, 1s), -5s), Kind::ended},
           Row{"SIGTERM, USR1 sent at the goodbye", goodbye(sent(k_term, SIGUSR1, 5s), -5s), Kind::ended},
           Row{"SIGTERM, USR1 sent as it ended", goodbye(sent(k_term, SIGUSR1, 0s), -5s), Kind::ended},
           Row{"SIGTERM, USR1 sent before a goodbye", goodbye(sent(k_term, SIGUSR1, 9s), -5s), Kind::lost},
           // Nobody here sent it: what becomes of its container tells.
           Row{"SIGTERM after a goodbye", goodbye(said(k_term), -5s), Kind::lost},
           Row{"SIGTERM as the goodbye comes", goodbye(said(k_term), 0s), Kind::lost},
           Row{"SIGTERM, goodbye within the doubt", goodbye(said(k_term), 199ms), Kind::lost},
           Row{"SIGTERM, goodbye while glue reaps", goodbye(cleaning(said(k_term), 8s), 3s), Kind::lost},
           Row{"SIGTERM, goodbye while glue reaps for ever", goodbye(cleaning(said(k_term), {}), 3s),
               Kind::lost},
           Row{"SIGTERM, goodbye after the doubt", goodbye(said(k_term), 200ms), Kind::ended},
           Row{"SIGTERM, glue lost within the doubt", gone(said(k_term), 199ms), Kind::lost},
           Row{"SIGTERM, glue lost, OOMKilled of another",
               shown(gone(cleaning(said(k_term), {}), 0s), "OOMKilled", 137), Kind::lost},
           Row{"SIGTERM, glue lost after the doubt", gone(said(k_term), 200ms), Kind::ended},
           Row{"SIGTERM, container lives on", said(k_term, 3), Kind::ended},
           Row{"SIGKILL, container lives on", said(k_kill), Kind::ended},
           Row{"SIGKILL after a goodbye, kills by the kernel", goodbye(said(k_kill, 1), -5s), Kind::lost},
           // Memory.
           Row{"SIGKILL, kills by the kernel", said(k_kill, 1), Kind::out_of_memory},
           Row{"137 of a child, kills by the kernel", said(ExitStatus::exited(137), 2), Kind::out_of_memory},
           Row{"SIGKILL, kills by the kernel, glue lost", gone(cleaning(said(k_kill, 1), {}), 0s),
               Kind::out_of_memory},
           Row{"SIGKILL, glue lost, OOMKilled", shown(gone(cleaning(said(k_kill), {}), 0s), "OOMKilled", 137),
               Kind::out_of_memory},
           Row{"SIGKILL, glue lost, nothing more", gone(cleaning(said(k_kill), {}), 0s), Kind::lost},
           Row{"OOMKilled", silent("OOMKilled", 137), Kind::out_of_memory},
           Row{"OOMKilled of an earlier process, stopped", silent("OOMKilled", 143), Kind::lost},
           Row{"OOMKilled of an earlier process, exit", silent("OOMKilled", 1), Kind::lost},
           Row{"OOMKilled after a goodbye", goodbye(silent("OOMKilled", 137), -30s), Kind::lost},
           Row{"Error 137", silent("Error", 137), Kind::lost},
           Row{"Error 137, far from the limit",
               with(silent("Error", 137), [](EndFacts& f) { f.last_seen_kib = 100L * 1024; }), Kind::lost},
           Row{"Error 137, close to the limit",
               with(silent("Error", 137), [](EndFacts& f) { f.last_seen_kib = 120L * 1024; }),
               Kind::out_of_memory},
           Row{"Error 137, a tenth from the limit",
               with(silent("Error", 137), [](EndFacts& f) { f.last_seen_kib = 128L * 1024 / 10 * 9; }),
               Kind::out_of_memory},
           Row{"Error 137, no limit known",
               with(silent("Error", 137),
                    [](EndFacts& f) {
                      f.limit_kib = 0;
                      f.last_seen_kib = 120L * 1024;
                    }),
               Kind::lost},
           Row{"the same, SIGTERM before",
               with(gone(cleaning(said(k_term), {}), 0s),
                    [](EndFacts& f) {
                      f.container = kube::Termination{"Error", "", 137, 0, {}};
                      f.limit_kib = f.last_seen_kib = 128L * 1024;
                    }),
               Kind::lost},
           Row{"the same, by the agent itself",
               with(silent("Error", 137),
                    [](EndFacts& f) {
                      f.last_seen_kib = 120L * 1024;
                      f.given_up = true;
                    }),
               Kind::lost},
           // Disk.
           Row{"killed for its disk", with(sent(k_kill, SIGKILL, 1s), disk), Kind::out_of_disk},
           Row{"killed for its disk, stopped", goodbye(with(sent(k_kill, SIGKILL, 1s), disk), 0s),
               Kind::out_of_disk},
           Row{"over its disk, ended before", with(sent(ExitStatus::exited(0), SIGKILL, 0s), disk),
               Kind::ended},
           // Nothing known.
           Row{"stopped from outside", goodbye({}, 0s), Kind::lost},
           Row{"lost", gone({}, 0s), Kind::lost},
       }) {
    CAPTURE(std::string(row.what));
    CHECK(verdict_of(row.facts, k_later).kind == row.kind);
    if (row.kind == Kind::ended) CHECK(verdict_of(row.facts, k_later).status == row.facts.exited->status);
  }
}

TEST_CASE("ending: what is not known yet, and until when") {
  struct Row {
    const char* what;
    EndFacts facts;
    Time now, until;
  };
  for (const Row& row : {
           Row{"it runs", {}, k_later, Time::max()},
           Row{"SIGTERM, glue reaps", cleaning(said(k_term), {}), k_later, Time::max()},
           Row{"SIGTERM, reaped", said(k_term), k_exit + 199ms, k_exit + 200ms},
           Row{"SIGKILL, kills by the kernel, reaped", said(k_kill, 1), k_exit, k_exit + 200ms},
           Row{"SIGKILL, glue lost", gone(cleaning(said(k_kill), {}), 0s), k_exit + 9s, k_exit + 10s},
           Row{"glue lost", gone({}, 0s), k_exit + 9s, k_exit + 10s},
       }) {
    CAPTURE(std::string(row.what));
    const Verdict verdict = verdict_of(row.facts, row.now);
    CHECK(verdict.kind == Kind::open);
    CHECK(verdict.until == row.until);
    if (row.until < Time::max()) CHECK(verdict_of(row.facts, row.until).kind != Kind::open);
  }
}

TEST_CASE("ending: a hold for memory says limit, peak and request") {
  CHECK(verdict_of(said(k_kill, 1), k_later).sentence ==
        "Job has gone over memory limit of 128 megabytes. Peak usage: 128 megabytes. Its request_memory: 64 "
        "megabytes. Consider resubmitting with a higher request_memory.");
  // Where the control group tells no peak, the largest process of the job does.
  EndFacts facts = said(k_kill, 1);
  facts.exited->memory_peak_kib = 0;
  facts.exited->max_rss_kib = 98'000;
  CHECK(verdict_of(facts, k_later).sentence.find(" Peak usage: 96 megabytes. ") != std::string::npos);
  const Verdict verdict = verdict_of(silent("OOMKilled", 137), k_later);
  CHECK(verdict.status == k_kill);
  CHECK(
      verdict.sentence ==
      "Job has gone over memory limit of 128 megabytes. Consider resubmitting with a higher request_memory.");
}

TEST_CASE("ending: a hold for memory says nothing that is not known") {
  EndFacts facts = silent("OOMKilled", 137);
  facts.limit_kib = 0;
  CHECK(verdict_of(facts, k_later).sentence ==
        "Job has gone over memory limit. Consider resubmitting with a higher request_memory.");
}

TEST_CASE("ending: a hold for disk says limit, usage and request") {
  EndFacts facts = sent(k_kill, SIGKILL, 1s);
  facts.disk = {400'000, true, 131'072, 0};
  Verdict verdict = verdict_of(facts, k_later);
  CHECK(verdict.status == k_kill);
  CHECK(verdict.sentence ==
        "Job has gone over disk limit of 128 megabytes in /tmp and /var/tmp. Usage: 391 megabytes. Consider "
        "resubmitting with a higher request_disk.");
  facts.disk = {400'000, false, 131'072, 131'000};
  verdict = verdict_of(facts, k_later);
  CHECK(verdict.sentence ==
        "Job has gone over disk limit of 128 megabytes in /tmp and /var/tmp. Usage: at least 391 megabytes. "
        "Its "
        "request_disk: 131000 kilobytes. Consider resubmitting with a higher request_disk.");
}

TEST_CASE("ending: what is lost says what the status says") {
  CHECK(verdict_of(gone({}, 0s), k_later).sentence == "the payload container was lost");
  CHECK(verdict_of(silent("ContainerStatusUnknown", 137), k_later).sentence ==
        "the payload container was lost: ContainerStatusUnknown (exit code 137)");
  CHECK(verdict_of(goodbye({}, 0s), k_later).sentence == "the payload container was stopped from outside");
}
