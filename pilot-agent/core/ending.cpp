#include "pilot-agent/core/ending.hpp"

#include <signal.h>

#include <algorithm>

namespace glidepod::agent {
namespace {

constexpr int k_killed = 128 + SIGKILL;  // the exit code that shells and runtimes report for SIGKILL

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
  // HTCondor's own words, which users know, followed by the numbers that are known.
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

// The kernel, or a node's shutdown, may signal all processes of a container in any order. This is the longest
// time that then lies between the end of a job's main process and the end of its glue. In an ordinary stop
// glue says goodbye first.
constexpr Milliseconds k_doubt{200};
// How long after a signal a job may end by it, since it may save its work first: HTCondor's default limit
// (MachineMaxVacateTime).
constexpr std::chrono::minutes k_effect{10};

bool stops_containers(const ExitStatus& status) {
  return status.how == ExitStatus::How::signaled && (status.number == SIGTERM || status.number == SIGKILL);
}

// Whether the job got this signal recently enough to have died of it. No process survives SIGKILL.
bool was_sent(const EndFacts& facts, int number) {
  const auto sent = facts.sent.find(number);
  if (sent == facts.sent.end() || sent->second > facts.exited_at) return false;
  return number == SIGKILL || facts.exited_at - sent->second <= k_effect;
}

// Whether HTCondor is ending the job because the agent asked for that. Then the job runs again, however it
// ends.
bool vacates(const EndFacts& facts) {
  return std::ranges::any_of(facts.sent, [&](const auto& sent) {
    return facts.goodbye_at && sent.second >= *facts.goodbye_at && sent.second <= facts.exited_at;
  });
}

// With memory.oom.group, which Kubernetes sets from 1.28 on, the kernel kills glue too. Runtimes that do not
// notice this report Error, as for any SIGKILL. Like HTCondor, this takes a use within a tenth of the limit
// for the cause.
bool container_died_of_memory(const EndFacts& facts) {
  if (!facts.container || facts.goodbye_at || facts.given_up) return false;
  if (facts.container->exit_code != k_killed) return false;
  if (facts.container->reason == "OOMKilled") return true;
  return facts.limit_kib > 0 && facts.last_seen_kib >= facts.limit_kib / 10 * 9;
}

Verdict memory(const EndFacts& facts) {
  return {Verdict::Kind::out_of_memory, facts.exited ? facts.exited->status : ExitStatus::signaled(SIGKILL),
          of_memory(facts)};
}

Verdict stopped() {
  return {Verdict::Kind::lost, {}, "the payload container was stopped from outside"};
}

// The verdict if the job's glue is gone. If SIGTERM had ended the job before, it was not killed for memory,
// whatever the status says.
Verdict gone(const EndFacts& facts, Time now) {
  const bool may_tell = !facts.exited || facts.exited->status.number == SIGKILL;
  if (may_tell && container_died_of_memory(facts)) return memory(facts);
  if (facts.given_up)
    return {Verdict::Kind::lost, {}, "glue did not answer, so its payload container was ended"};
  if (may_tell && !facts.container && now < facts.container_by)
    return {Verdict::Kind::open, {}, {}, facts.container_by};
  std::string why = "the payload container was lost";
  if (facts.container)
    why += fmt::format(": {} (exit code {})", facts.container->reason, facts.container->exit_code);
  return {Verdict::Kind::lost, {}, std::move(why)};
}

// The verdict if the container may have ended too. Then its status decides.
Verdict in_doubt(const EndFacts& facts, Time now) {
  const ExitStatus& status = facts.exited->status;
  const bool counted = status.number == SIGKILL && facts.exited->oom_kills > 0;
  const auto over = facts.ended_at ? std::optional(*facts.ended_at + k_doubt) : std::nullopt;
  const auto meanwhile = [&](const std::optional<Time>& at) { return at && (!over || *at < *over); };
  if (meanwhile(facts.goodbye_at)) return stopped();
  if (meanwhile(facts.gone_at)) return counted ? memory(facts) : gone(facts, now);
  if (!over || now < *over) return {Verdict::Kind::open, {}, {}, over.value_or(Time::max())};
  return counted ? memory(facts) : Verdict{Verdict::Kind::ended, status, {}};
}

}  // namespace

Verdict verdict_of(const EndFacts& facts, Time now) {
  using Kind = Verdict::Kind;
  if (!facts.exited) {
    if (facts.goodbye_at) return stopped();
    if (facts.gone_at) return gone(facts, now);
    return {Kind::open, {}, {}, Time::max()};
  }
  const ExitStatus& status = facts.exited->status;
  const bool killed = is_killed(status), sent = was_sent(facts, killed ? SIGKILL : status.number);
  if (killed && sent && facts.disk) return {Kind::out_of_disk, status, of_disk(*facts.disk)};
  if (stops_containers(status) && !sent && !vacates(facts)) return in_doubt(facts, now);
  // If the main process is a shell, it reports its child's SIGKILL as exit code 137.
  if (killed && !sent && !facts.goodbye_at && facts.exited->oom_kills > 0) return memory(facts);
  return {Kind::ended, status, {}};
}

}  // namespace glidepod::agent
