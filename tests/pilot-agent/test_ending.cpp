#include "pilot-agent/core/ending.hpp"

#include <doctest/doctest.h>
#include <signal.h>

using namespace glidepod;
using namespace glidepod::agent;
using Kind = Verdict::Kind;

namespace {

const ExitStatus k_kill = ExitStatus::signaled(SIGKILL);

EndFacts said(ExitStatus status, std::uint32_t oom_kills) {
  EndFacts facts;
  facts.exited = wire::Exited{1, status, 0, oom_kills, 128 * 1024, 127 * 1024 + 1};
  facts.request_mib = 64;
  return facts;
}

EndFacts silent(const char* reason, int code) {
  EndFacts facts;
  facts.container = kube::Termination{reason, "", code, 0, {}};
  facts.limit_kib = 128 * 1024;
  return facts;
}

}  // namespace

TEST_CASE("ending: a job that the kernel killed for memory is held, with limit, peak and request") {
  const Verdict verdict = verdict_of(said(k_kill, 1));
  CHECK(verdict.kind == Kind::out_of_memory);
  CHECK(verdict.sentence ==
        "Job has gone over memory limit of 128 megabytes. Peak usage: 128 megabytes. Its request_memory: 64 "
        "megabytes. Consider resubmitting with a higher request_memory.");
  // Where the control group tells no peak, the largest process of the job does.
  EndFacts facts = said(k_kill, 1);
  facts.exited->memory_peak_kib = 0;
  facts.exited->max_rss_kib = 98'000;
  CHECK(verdict_of(facts).sentence.find(" Peak usage: 96 megabytes. ") != std::string::npos);
  // A shell says 137 of its killed child.
  CHECK(verdict_of(said(ExitStatus::exited(137), 2)).kind == Kind::out_of_memory);
}

TEST_CASE("ending: what the kernel killed earlier does not explain another end") {
  for (const ExitStatus status :
       {ExitStatus::exited(0), ExitStatus::exited(7), ExitStatus::signaled(SIGSEGV)}) {
    const Verdict verdict = verdict_of(said(status, 3));
    CHECK(verdict.kind == Kind::ended);
    CHECK(verdict.status == status);
  }
}

TEST_CASE("ending: a job killed by somebody else, or at HTCondor's wish, ended so") {
  CHECK(verdict_of(said(k_kill, 0)).kind == Kind::ended);
  CHECK(verdict_of(said(ExitStatus::exited(137), 0)).kind == Kind::ended);
  EndFacts facts = said(k_kill, 1);
  facts.signalled = true;
  CHECK(verdict_of(facts).kind == Kind::ended);
}

TEST_CASE("ending: what glue said counts, whatever the container's status says") {
  EndFacts facts = said(ExitStatus::exited(0), 0);
  facts.container = kube::Termination{"OOMKilled", "", 137, 0, {}};
  CHECK(verdict_of(facts).kind == Kind::ended);
}

TEST_CASE("ending: a job's SIGKILL that a kill of its whole container for memory explains") {
  EndFacts facts = said(k_kill, 0);
  facts.container = kube::Termination{"OOMKilled", "", 137, 0, {}};
  CHECK(verdict_of(facts).kind == Kind::out_of_memory);
  facts.exited->status = ExitStatus::signaled(SIGTERM);
  CHECK(verdict_of(facts).kind == Kind::ended);
}

TEST_CASE("ending: a kill of the whole container for memory takes glue too, and the status tells") {
  const Verdict verdict = verdict_of(silent("OOMKilled", 137));
  CHECK(verdict.kind == Kind::out_of_memory);
  CHECK(verdict.status == k_kill);
  CHECK(
      verdict.sentence ==
      "Job has gone over memory limit of 128 megabytes. Consider resubmitting with a higher request_memory.");
}

TEST_CASE("ending: Error with 137 is a lack of memory only where the job was seen close to the limit") {
  EndFacts facts = silent("Error", 137);
  CHECK(verdict_of(facts).kind == Kind::lost);
  facts.last_seen_kib = 100 * 1024;
  CHECK(verdict_of(facts).kind == Kind::lost);
  facts.last_seen_kib = 120 * 1024;
  CHECK(verdict_of(facts).kind == Kind::out_of_memory);
  facts.limit_kib = 0;
  CHECK(verdict_of(facts).kind == Kind::lost);
}

TEST_CASE("ending: OOMKilled of an earlier process is not why a container ended otherwise") {
  // The kubelet says OOMKilled of a container if any process in it was killed so.
  CHECK(verdict_of(silent("OOMKilled", 143)).kind == Kind::lost);
  CHECK(verdict_of(silent("OOMKilled", 1)).kind == Kind::lost);
  EndFacts stopped = silent("OOMKilled", 137);
  stopped.goodbye = true;  // and it was killed when its grace was over
  CHECK(verdict_of(stopped).kind == Kind::lost);
  CHECK(verdict_of(stopped).sentence == "the payload container was stopped from outside");
}

TEST_CASE("ending: a job that was killed for its disk is held, and one that ended before ended so") {
  EndFacts facts = said(k_kill, 0);
  facts.signalled = true;
  facts.disk = {400'000, true, 131'072, 0};
  Verdict verdict = verdict_of(facts);
  CHECK(verdict.kind == Kind::out_of_disk);
  CHECK(verdict.status == k_kill);
  CHECK(verdict.sentence ==
        "Job has gone over disk limit of 128 megabytes in /tmp and /var/tmp. Usage: 391 megabytes. Consider "
        "resubmitting with a higher request_disk.");
  facts.disk = {400'000, false, 131'072, 131'000};
  verdict = verdict_of(facts);
  CHECK(verdict.sentence ==
        "Job has gone over disk limit of 128 megabytes in /tmp and /var/tmp. Usage: at least 391 megabytes. "
        "Its "
        "request_disk: 131000 kilobytes. Consider resubmitting with a higher request_disk.");
  facts.exited->status = ExitStatus::exited(0);
  CHECK(verdict_of(facts).kind == Kind::ended);
}

TEST_CASE("ending: nothing known is lost, with what the status says") {
  CHECK(verdict_of({}).sentence == "the payload container was lost");
  CHECK(verdict_of(silent("ContainerStatusUnknown", 137)).sentence ==
        "the payload container was lost: ContainerStatusUnknown (exit code 137)");
}
