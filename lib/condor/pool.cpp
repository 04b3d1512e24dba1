#include "lib/condor/pool.hpp"

#include "lib/base/text.hpp"
#include "lib/condor/ad_stream.hpp"

namespace glidepod::condor {

Command Pool::command(std::vector<std::string> argv) const {
  if (!collector_.empty()) {
    argv.insert(argv.begin() + 1, collector_);
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

// Whom it was that did not answer: HTCondor's tools may not say it.
Pool::Answer Pool::of_collector(Answer answer) const {
  if (!collector_.empty())
    answer.on_end = [name = collector_, told = std::move(answer.on_end)](const Result<void>& end) {
      told(end ? Result<void>() : end.error().in(name));
    };
  return answer;
}

void Pool::schedds(Answer answer) {
  ask({"condor_status", "-schedd", "-json", "-attributes", "Name,AuthenticatedIdentity"},
      of_collector(std::move(answer)));
}

void Pool::slots(const std::string& constraint, const std::vector<std::string>& attributes, Answer answer) {
  // Without an option it shows the slots; -startd gives, since HTCondor 23, one ad for each daemon instead.
  ask({"condor_status", "-constraint", constraint, "-json", "-attributes",
       fmt::format("{}", fmt::join(attributes, ","))},
      of_collector(std::move(answer)));
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
  // A number is as good as true or false to a constraint, and undefined is not true.
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
