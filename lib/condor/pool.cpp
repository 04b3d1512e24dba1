#include "lib/condor/pool.hpp"

#include "lib/condor/ad_stream.hpp"

namespace glidepod::condor {

void Pool::ask(std::vector<std::string> argv, Answer answer) {
  if (!collector_.empty()) {
    argv.insert(argv.begin() + 1, collector_);
    argv.insert(argv.begin() + 1, "-pool");
  }
  auto stream = std::make_shared<AdStream>(std::move(answer.on_ad), std::move(answer.on_bad));
  runner_.run(
      {std::move(argv), time_limit_}, [stream](std::string_view piece) { stream->feed(piece); },
      [stream, on_end = std::move(answer.on_end)](const CommandEnd& end) {
        on_end(end.ok() ? stream->end() : end);
      });
}

void Pool::schedds(Answer answer) {
  ask({"condor_status", "-schedd", "-json", "-attributes", "Name,AuthenticatedIdentity"}, std::move(answer));
}

void Pool::slots(const std::string& constraint, const std::vector<std::string>& attributes, Answer answer) {
  // Without an option it shows the slots; -startd gives, since HTCondor 23, one ad for each daemon instead.
  ask({"condor_status", "-constraint", constraint, "-json", "-attributes",
       fmt::format("{}", fmt::join(attributes, ","))},
      std::move(answer));
}

void Pool::job_groups(const std::string& schedd, const std::string& constraint,
                      const std::vector<std::string>& attributes, Answer answer) {
  ask({"condor_q", "-name", schedd, "-allusers", "-group-by", "-constraint", constraint, "-json",
       "-attributes", fmt::format("{}", fmt::join(attributes, ","))},
      std::move(answer));
}

}  // namespace glidepod::condor
