#include "pilot-agent/core/ending.hpp"

#include <signal.h>

#include <algorithm>

namespace glidepod::agent {
namespace {

constexpr int k_killed = 128 + SIGKILL;  // what shells and runtimes make of SIGKILL

bool is_killed(const ExitStatus& status) {
  return status == ExitStatus::signaled(SIGKILL) || status == ExitStatus::exited(k_killed);
}

std::string of_memory(const EndFacts& facts) {
  std::int64_t limit = facts.limit_kib;
  std::int64_t peak = facts.last_seen_kib;
  if (facts.exited) {
    if (facts.exited->memory_limit_kib > 0) limit = facts.exited->memory_limit_kib;
    peak = std::max({peak, facts.exited->memory_peak_kib, facts.exited->max_rss_kib});
  }
  // HTCondor's own words, which users know, then the numbers that are known.
  std::string sentence = "Job has gone over memory limit";
  if (limit > 0) sentence += fmt::format(" of {} megabytes", limit / 1024);
  sentence += ".";
  if (peak > 0) sentence += fmt::format(" Peak usage: {} megabytes.", (peak + 1023) / 1024);
  if (facts.request_mib > 0) sentence += fmt::format(" Its request_memory: {} megabytes.", facts.request_mib);
  return sentence + " Consider resubmitting with a higher request_memory.";
}

std::string of_disk(const EndFacts::Disk& disk) {
  std::string sentence =
      fmt::format("Job has gone over disk limit of {} megabytes in /tmp and /var/tmp. Usage: {}{} megabytes.",
                  disk.limit_kib / 1024, disk.complete ? "" : "at least ", (disk.used_kib + 1023) / 1024);
  if (disk.request_kib > 0) sentence += fmt::format(" Its request_disk: {} kilobytes.", disk.request_kib);
  return sentence + " Consider resubmitting with a higher request_disk.";
}

// A kernel with memory.oom.group, as Kubernetes sets it from 1.28 on, kills glue too; runtimes that do not
// see that say Error, as for any SIGKILL. HTCondor counts what comes within a tenth of the limit.
bool died_of_memory(const EndFacts& facts) {
  if (!facts.container || facts.goodbye || facts.container->exit_code != k_killed) return false;
  if (facts.container->reason == "OOMKilled") return true;
  return facts.limit_kib > 0 && facts.last_seen_kib >= facts.limit_kib / 10 * 9;
}

}  // namespace

Verdict verdict_of(const EndFacts& facts) {
  using Kind = Verdict::Kind;
  if (facts.exited) {
    if (facts.disk && is_killed(facts.exited->status))
      return {Kind::out_of_disk, facts.exited->status, of_disk(*facts.disk)};
    const bool of_kernel = is_killed(facts.exited->status) && !facts.signalled &&
                           (facts.exited->oom_kills > 0 || died_of_memory(facts));
    if (of_kernel) return {Kind::out_of_memory, facts.exited->status, of_memory(facts)};
    return {Kind::ended, facts.exited->status, {}};
  }
  if (died_of_memory(facts)) return {Kind::out_of_memory, ExitStatus::signaled(SIGKILL), of_memory(facts)};
  if (facts.goodbye) return {Kind::lost, {}, "the payload container was stopped from outside"};
  std::string why = "the payload container was lost";
  if (facts.container)
    why += fmt::format(": {} (exit code {})", facts.container->reason, facts.container->exit_code);
  return {Kind::lost, {}, std::move(why)};
}

}  // namespace glidepod::agent
