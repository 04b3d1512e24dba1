#include "lib/condor/pool.hpp"

#include "lib/base/text.hpp"
#include "lib/condor/ad_stream.hpp"

namespace glidepod::condor {

Pool::Pool(CommandRunner& runner, const std::string& collector, Milliseconds time_limit)
    : runner_(runner), time_limit_(time_limit) {
  for (const auto& part : split(collector, ','))
    if (const auto name = trim(part); !name.empty()) collectors_.emplace_back(name);
}

// condor_status of HTCondor 23.9 takes no list after -pool, though condor_q does. So each command gets one
// collector.
Command Pool::command(std::vector<std::string> argv) const {
  if (!collectors_.empty()) {
    argv.insert(argv.begin() + 1, collectors_[*good_ % collectors_.size()]);
    argv.insert(argv.begin() + 1, "-pool");
  }
  return {std::move(argv), time_limit_};
}

void Pool::ask(std::vector<std::string> argv, Answer answer) {
  auto stream = std::make_shared<AdStream>(std::move(answer.on_ad), std::move(answer.on_bad));
  runner_.run(
      command(std::move(argv)), [stream](std::string_view piece) { stream->feed(piece); },
      [stream, on_end = std::move(answer.on_end)](const CommandEnd& end) {
        on_end(end.ok() ? stream->end() : end);
      });
}

void Pool::ask_collector(const std::vector<std::string>& argv, Answer answer) {
  ask_collector(argv, 1, std::move(answer));
}

// Asks a collector. If it does not answer, the Error names it, which HTCondor's tools may not do. If part of
// an answer has come, no other collector is asked.
void Pool::ask_collector(const std::vector<std::string>& argv, std::size_t asked, Answer answer) {
  if (collectors_.empty()) return ask(argv, std::move(answer));
  const auto number = *good_;
  auto shared = std::make_shared<Answer>(std::move(answer));
  auto begun = std::make_shared<bool>(false);
  ask(argv, {[shared, begun](const Ad& ad) {
               *begun = true;
               shared->on_ad(ad);
             },
             shared->on_bad,
             [this, argv, asked, number, shared, begun, good = good_](const Result<void>& end) {
               if (end) return shared->on_end({});
               const auto& name = collectors_[number % collectors_.size()];
               if (*begun || asked >= collectors_.size()) return shared->on_end(end.error().in(name));
               // Another question may have moved on to the next collector already.
               if (*good == number) *good = (number + 1) % collectors_.size();
               ask_collector(argv, asked + 1, *shared);
             }});
}

void Pool::schedds(Answer answer) {
  ask_collector(
      {"condor_status", "-schedd", "-json", "-attributes", "Name,AuthenticatedIdentity,TotalIdleJobs"},
      std::move(answer));
}

void Pool::slots(const std::string& constraint, const std::vector<std::string>& attributes, Answer answer) {
  // Without an option condor_status shows the slots. Since HTCondor 23, -startd shows one ad for each daemon
  // instead.
  std::vector<std::string> argv = {"condor_status", "-constraint", constraint, "-json"};
  if (!attributes.empty())
    argv.insert(argv.end(), {"-attributes", fmt::format("{}", fmt::join(attributes, ","))});
  ask_collector(argv, std::move(answer));
}

void Pool::ask_accountant(std::string attributes, Answer answer) {
  ask_collector({"condor_status", "-subsystem", "accounting", "-json", "-attributes", std::move(attributes)},
                std::move(answer));
}

void Pool::cycles(Answer answer) {
  ask_accountant("LastUpdate,LastHeardFrom", std::move(answer));
}

void Pool::advertise_slots(std::string text, std::function<void(Result<void>)> done) {
  auto advertise = command({"condor_advertise", "-multiple", "UPDATE_STARTD_AD", "-"});
  advertise.input = std::move(text);
  runner_.run(
      std::move(advertise), [](std::string_view) {}, std::move(done));
}

void Pool::accounting(Answer answer) {
  ask_accountant(
      "Name,AccountingGroup,Priority,PriorityFactor,ConfigQuota,SurplusPolicy,WeightedResourcesUsed",
      std::move(answer));
}

void Pool::job_groups(const std::string& schedd, const std::string& constraint,
                      const std::vector<std::string>& attributes, Answer answer) {
  ask({"condor_q", "-name", schedd, "-allusers", "-group-by", "-constraint", constraint, "-json",
       "-attributes", fmt::format("{}", fmt::join(attributes, ","))},
      std::move(answer));
}

void Pool::job(const std::string& schedd, const std::string& id, Answer answer) {
  ask({"condor_q", "-name", schedd, "-allusers", id, "-json"}, std::move(answer));
}

void Pool::past_job(const std::string& schedd, const std::string& id, Answer answer) {
  ask({"condor_history", "-name", schedd, id, "-limit", "1", "-json", "-attributes",
       "Owner,JobStatus,EnteredCurrentStatus,ExitBySignal,ExitCode,ExitSignal,RemoveReason,LastRemoteHost"},
      std::move(answer));
}

void Pool::holds(const std::string& schedd, const std::string& id,
                 const std::vector<std::string>& expressions,
                 std::function<void(Result<std::vector<bool>>)> done) {
  std::vector<std::string> argv = {"condor_q", "-name", schedd, "-allusers", id, "-af"};
  // As in a constraint, a number counts as a boolean, and undefined is not true.
  for (const auto& expression : expressions)
    argv.push_back(fmt::format("(ifThenElse({}, true, false) =?= true)", expression));
  auto output = std::make_shared<std::string>();
  runner_.run(
      command(std::move(argv)), [output](std::string_view piece) { output->append(piece); },
      [output, count = expressions.size(), done = std::move(done)](const CommandEnd& end) {
        if (!end) return done(end.error());
        std::vector<bool> result;
        for (const auto& word : split(trim(*output), ' ')) {
          if (word != "true" && word != "false") break;
          result.push_back(word == "true");
        }
        if (result.size() != count && !trim(*output).empty())
          return done(error("condor_q: '{}' is not an answer", one_line(*output, 100)));
        done(std::move(result));
      });
}

}  // namespace glidepod::condor
