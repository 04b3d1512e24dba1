#include "pilot-agent/core/answers.hpp"

#include <algorithm>

#include "pilot-agent/core/words.hpp"

namespace glidepod::agent {

namespace {
std::string_view name_of(wire::Fault fault) {
  switch (fault) {
    case wire::Fault::user:
      return "user";
    case wire::Fault::infrastructure:
      return "infrastructure";
    case wire::Fault::doubt:
      return "doubt";
  }
  return "?";
}

EndFacts facts_of(const Job& job) {
  EndFacts facts = job.end;
  facts.request_mib = job.request.memory_mib;
  facts.last_seen_kib = job.pulse.answer.memory_kib;
  return facts;
}
}  // namespace

Verdict verdict_on(const Job& job, Time now) {
  return verdict_of(facts_of(job), now);
}

void Answers::fail(const Request& request, wire::Fault fault, std::string message) {
  const bool of_job = request.verb != wire::Verb::test && !request.any_image;
  // A job that has begun can only be given back by its starter. So a doubt counts as a fault of the
  // infrastructure.
  if (of_job && fault == wire::Fault::doubt) fault = wire::Fault::infrastructure;
  if (!request.any_image)
    ++(fault == wire::Fault::infrastructure ? binds_.infrastructure
       : fault == wire::Fault::doubt        ? binds_.doubt
                                            : binds_.user);
  actions_.warn("event=bind_failed job={} owner={} image={} fault={} reason={}", word(request.job),
                word(request.owner), word(request.asked), name_of(fault), quoted(message));
  if (request.client != 0) actions_.add(Fail{request.client, of_job, fault, std::move(message)});
}

void Answers::fail_in_doubt(const Request& request, const Doubts::Doubt& doubt, const std::string& message,
                            bool counts, Time now) {
  if (!counts) return fail(request, wire::Fault::infrastructure, message);
  if (doubt.counted < Doubts::k_enough) return fail(request, wire::Fault::doubt, message);
  const auto minutes = std::chrono::ceil<std::chrono::minutes>(now - doubt.first).count();
  fail(request, wire::Fault::user,
       fmt::format("{} ({} times in {} minutes on this node)", message, doubt.counted, minutes));
}

void Answers::tell_end(const Job& job, Time now) {
  const auto took = std::max(job.bound_in, std::chrono::microseconds(0));
  const wire::Ran ran{job.container, job.digest, job.how, static_cast<std::uint64_t>(took.count())};
  tell(job.request, facts_of(job), ran, now);
}

void Answers::tell_lost(const std::vector<LostJobs::Lost>& jobs, Time now) {
  for (const LostJobs::Lost& lost : jobs) tell_end(lost.request, lost.end, now);
}

void Answers::tell(const Request& request, const EndFacts& facts, const wire::Ran& ran, Time now) {
  if (request.client == 0) return;
  const Verdict verdict = verdict_of(facts, now);
  switch (verdict.kind) {
    case Verdict::Kind::ended:
      return actions_.add(Answer{request.client, verdict.status, ran});
    case Verdict::Kind::out_of_memory:
    case Verdict::Kind::out_of_disk: {
      const bool memory = verdict.kind == Verdict::Kind::out_of_memory;
      actions_.warn("event={} job={} owner={} reason={}", memory ? "out_of_memory" : "out_of_disk",
                    word(request.job), word(request.owner), quoted(verdict.sentence));
      shortage_ = fmt::format("job {}: {}", request.job, verdict.sentence);
      return actions_.add(Hold{request.client, verdict.status, k_job_out_of_resources,
                               memory ? k_subcode_memory : k_subcode_disk, verdict.sentence});
    }
    case Verdict::Kind::lost:
      return fail(request, wire::Fault::infrastructure, verdict.sentence);
    case Verdict::Kind::open:  // the pilot ends before it is known
      return fail(request, wire::Fault::infrastructure, "the pilot is ending");
  }
}

}  // namespace glidepod::agent
