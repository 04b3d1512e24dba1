#include "provisioner/why/job_look.hpp"

#include <algorithm>

#include "lib/base/text.hpp"
#include "lib/condor/clauses.hpp"
#include "lib/condor/job_ad.hpp"
#include "provisioner/demand/trust.hpp"

namespace glidepod::provisioner {

namespace {

using condor::Ad;
using From = Clause::From;

// What condor_submit adds: pilots have it, or it is the group's size.
bool is_submits_own(std::string expression) {
  static constexpr std::string_view known[] = {
      R"(target.arch=="x86_64")",
      R"(target.opsys=="linux")",
      "target.disk>=requestdisk",
      "target.memory>=requestmemory",
      "target.cpus>=requestcpus",
      "target.gpus>=requestgpus",
      "target.hasfiletransfer",
      "(target.hasfiletransfer)||(target.filesystemdomain==my.filesystemdomain)",
      "(target.filesystemdomain==my.filesystemdomain)||(target.hasfiletransfer)",
      "target.hascontainer",
      "target.hassingularity",
      "target.hasdockerurl"};
  std::erase_if(expression, [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; });
  return std::ranges::find(known, lower_case(expression)) != std::end(known);
}

// Over this job alone: each of its names is in the job's ad.
bool is_of_job(const std::string& expression, const Ad& job) {
  const auto names = condor::referenced_attributes(expression);
  const auto in_job = [&job](const std::string& name) { return job.written(name) != "undefined"; };
  return names && std::ranges::all_of(names.value(), in_job) &&
         lower_case(expression).find("target") == std::string::npos;
}

Clause::From from_of(QueryPart::From part) {
  if (part == QueryPart::From::universe) return From::universe;
  if (part == QueryPart::From::name_space) return From::name_space;
  return part == QueryPart::From::pilots ? From::pilots : From::settings;
}

}  // namespace

std::vector<Clause> clauses_of(const JobRules& rules, const Ad& job) {
  std::vector<Clause> result;
  for (const auto& part : rules.query)
    if (part.from == QueryPart::From::pilots) {
      for (const auto& clause : rules.taken)
        result.push_back({From::pilots, condor::conjuncts(clause.expression).front(), true, {}, clause});
    } else if (part.from != QueryPart::From::status) {
      for (auto& expression : condor::conjuncts(part.expression))
        result.push_back({from_of(part.from), std::move(expression), true, {}});
    }
  if (!rules.name_space.empty()) result.push_back({From::name_space, rules.name_space, true, {}});
  for (auto& expression : condor::conjuncts(rules.start)) {
    auto of_job = condor::over_target(expression);
    const bool told = of_job.has_value();
    result.push_back({From::start, told ? std::move(*of_job) : std::move(expression), told, {}});
  }
  const auto requirements = job.written("Requirements");
  if (requirements == "undefined") return result;
  for (auto& expression : condor::conjuncts(requirements)) {
    if (is_submits_own(expression)) continue;
    const bool told = is_of_job(expression, job);
    result.push_back({From::requirements, std::move(expression), told, {}});
  }
  return result;
}

JobInquiry::JobInquiry(condor::CommandRunner& runner, HtcondorSettings settings, JobRules rules)
    : settings_(std::move(settings)),
      rules_(std::move(rules)),
      pool_(runner, settings_.pool, std::chrono::duration_cast<Milliseconds>(settings_.schedd_time_limit)) {}

void JobInquiry::ask(const std::string& id, const std::string& schedd, std::function<void(JobLook)> done) {
  look_.id = id;
  done_ = std::move(done);
  const TrustedSchedds trusted(settings_);
  pool_.schedds({[this, schedd, trusted](const Ad& ad) {
                   const auto name = ad.text("Name"), identity = ad.text("AuthenticatedIdentity");
                   if (name.empty() || (!schedd.empty() && schedd != name)) return;
                   schedds_.push_back({name, trusted.hold(name, identity)});
                 },
                 [](const std::string&) {},  // the demand tells it
                 [this, schedd](const Result<void>& end) {
                   if (!end) look_.blind = end.error().in("list of schedds").message();
                   if (end && schedds_.empty())
                     look_.blind = schedd.empty() ? "the collector has no schedd"
                                                  : fmt::format("the collector has no schedd '{}'", schedd);
                   if (look_.blind) return done_(std::move(look_));
                   std::sort(schedds_.begin(), schedds_.end(),
                             [](const Asked& a, const Asked& b) { return a.schedd < b.schedd; });
                   look_.schedds_asked = static_cast<std::int64_t>(schedds_.size());
                   ask_all(&condor::Pool::job, JobLook::Where::queue);
                 }});
}

void JobInquiry::ask_all(Question question, JobLook::Where where) {
  question_ = question;
  where_ = where;
  next_ = 0;
  ask_next();
}

void JobInquiry::ask_next() {
  if (next_ == schedds_.size() && under_way_ == 0) return all_answered();
  while (next_ < schedds_.size() && under_way_ < static_cast<std::size_t>(settings_.parallel_queries)) {
    const auto asked = schedds_[next_++];
    ++under_way_;
    (pool_.*question_)(asked.schedd, look_.id,
                       {[this, asked](const Ad& ad) { found(asked, ad); },
                        [this, asked](const std::string& why) {
                          look_.problems.push_back(fmt::format("{}: bad ad: {}", asked.schedd, why));
                        },
                        [this, asked](const Result<void>& end) {
                          --under_way_;
                          if (!end) look_.problems.push_back(end.error().in(asked.schedd).message());
                          ask_next();
                        }});
  }
}

void JobInquiry::found(const Asked& asked, const Ad& ad) {
  // One whose jobs count is meant rather than another.
  const bool better = look_.schedds.empty() || (asked.counts && !look_.counts);
  look_.schedds.insert(better ? look_.schedds.begin() : look_.schedds.end(), asked.schedd);
  if (!better) return;
  look_.counts = asked.counts;
  look_.where = where_;
  look_.ad = ad;
}

void JobInquiry::all_answered() {
  if (look_.where == JobLook::Where::queue) return judge();
  if (look_.where == JobLook::Where::nowhere && where_ == JobLook::Where::queue)
    return ask_all(&condor::Pool::past_job, JobLook::Where::history);
  done_(std::move(look_));
}

void JobInquiry::judge() {
  look_.clauses = clauses_of(rules_, look_.ad);
  std::vector<std::string> expressions;
  for (const auto& clause : look_.clauses)
    if (clause.of_job) expressions.push_back(clause.expression);
  pool_.holds(look_.schedds.front(), look_.id, expressions, [this](const Result<std::vector<bool>>& told) {
    if (!told) look_.problems.push_back(told.error().in(look_.schedds.front()).message());
    std::size_t at = 0;
    for (auto& clause : look_.clauses)
      if (clause.of_job && told && at < told.value().size()) clause.holds = told.value()[at++];
    done_(std::move(look_));
  });
}

}  // namespace glidepod::provisioner
