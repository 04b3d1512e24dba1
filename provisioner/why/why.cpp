#include "provisioner/why/why.hpp"

#include "lib/base/json.hpp"
#include "lib/base/text.hpp"
#include "lib/base/time.hpp"
#include "provisioner/demand/name_space.hpp"
#include "provisioner/service/drain_list.hpp"
#include "provisioner/service/parts.hpp"
#include "provisioner/why/findings.hpp"

namespace glidepod::provisioner {

namespace {

using Json = nlohmann::json;

Result<std::string> job_id(const std::string& text) {
  const auto parts = split(text, '.');
  if (parts.size() > 2 || !parse_integer(parts[0]) || (parts.size() == 2 && !parse_integer(parts[1])))
    return error("'{}' is no job: CLUSTER.PROC, as condor_q prints it", one_line(text, 100));
  return parts.size() == 2 ? text : text + ".0";
}

JobRules rules_of(const Parts& parts, const ServiceOptions& options) {
  const auto& settings = parts.settings;
  JobRules rules;
  rules.query = query_parts(settings.htcondor, settings.kubernetes.name_space, options.backend->name_space,
                            joined(parts.backend->jobs_taken()));
  rules.taken = parts.backend->jobs_taken();
  rules.start = options.backend->pilots(settings).additional_requirements;
  // The query and START have a switch each.
  const bool asked = std::ranges::any_of(
      rules.query, [](const QueryPart& part) { return part.from == QueryPart::From::name_space; });
  const auto pilots = settings.kubernetes.pilots_matching;
  const bool wanted =
      options.backend->name_space == CondorDemand::Namespace::matched && pilots != NamespaceMatching::no;
  const bool same = pilots == settings.htcondor.force_namespace_matching;
  if (wanted && !(asked && same))
    rules.name_space = asks_for_namespace(settings.kubernetes.name_space, pilots);
  return rules;
}

// The group that the backend would make a pod of for this job.
Result<Group> group_for(const condor::Ad& job, const Backend& backend, const PolicySettings& policy) {
  Demand demand;
  demand.groups[TRY(group_of(job, policy))].idle = 1;
  Capacity capacity;
  demand = backend.fit(std::move(demand), capacity);
  if (!demand.groups.empty()) return demand.groups.begin()->first;
  return capacity.unservable.empty() ? error("no pod can be made for it")
                                     : error("{}", capacity.unservable.begin()->second);
}

// By the clock of this machine, whose error is far below a minute.
LeaseLook lease_look(const LeaseOptions& named, const Result<Json>& lease, Time now) {
  LeaseLook look{.name = named.name};
  if (!lease) look.failure = lease.error().message();
  // The host's name, which comes before the last "_" of an identity.
  const auto here = named.identity.substr(0, named.identity.rfind('_') + 1);
  try {
    const auto spec = (lease && !lease->is_null() ? *lease : Json::object()).value("spec", Json::object());
    look.holder = spec.value("holderIdentity", "");
    look.here = look.holder.starts_with(here);
    if (const auto renewed = parse_time(spec.value("renewTime", "")))
      look.age = std::chrono::floor<Seconds>(now - *renewed);
  } catch (const Json::exception&) {
    look.failure = "the lease cannot be read";
  }
  return look;
}

Json answer_of(const Scene& scene) {
  const auto& job = scene.job;
  Json answer = {{"job", job.id},
                 {"time", time_text(scene.now)},
                 {"schedd", job.schedds.empty() ? "" : job.schedds.front()},
                 {"owner", one_line(job.ad.text("Owner"), 100)},
                 {"group", scene.group ? scene.group->name() : ""},
                 {"findings", Json::array()},
                 {"problems", job.problems}};
  for (const auto& finding : findings(scene))
    answer["findings"].push_back({{"key", finding.key},
                                  {"weight", to_string(finding.weight)},
                                  {"what", finding.what},
                                  {"seen", finding.seen},
                                  {"change", finding.change},
                                  {"who", to_string(finding.who)}});
  if (job.schedds.size() > 1)
    answer["problems"].push_back(fmt::format("{} have a job of this number: choose one by --schedd NAME",
                                             fmt::join(job.schedds, " and ")));
  return answer;
}

}  // namespace

Result<Json> why_once(const ServiceOptions& options, const WhyOptions& why) {
  const auto id = TRY(job_id(why.job));
  auto loop = TRY(Loop::create());
  const auto configuration = TRY(read_configuration(options));
  const auto parts = TRY(Parts::make(loop, options, configuration, PodFeed::Mode::once, {}));
  const auto& settings = parts->settings;
  Scene scene;
  scene.now = std::chrono::floor<Seconds>(std::chrono::system_clock::now());
  scene.htcondor = settings.htcondor;
  scene.policy = settings.policy;
  // Pilots without payload containers have a START of their own.
  const bool ours = !parts->backend->jobs_taken().empty();
  scene.gpu_jobs_only = ours && settings.kubernetes.gpu_jobs_only;
  scene.least_fill = ours ? settings.kubernetes.least_fill : 0;
  scene.sleep_time = settings.sleep_time;
  scene.status_file = why.status_file.empty() ? settings.policy.status_file : why.status_file;
  scene.status = read_status(scene.status_file);
  auto memory = scene.status.is_object() ? scene.status.value("memory", Json()) : Json();
  if (parts->client && !options.lease.empty()) {
    const auto named = TRY(lease_of(options));
    const auto lease = read_lease(loop, *parts, named);
    scene.lease = lease_look(named, lease, scene.now);
    memory = lease ? memory_in(*lease) : Json();
    auto list = lease ? drained_in(*lease) : DrainList();
    if (list) parts->cycle->drain(std::move(list).value());
  }
  if (!memory.is_null()) scene.recalled = parts->cycle->recall(memory, scene.now).ok();
  int missing = 2;
  const auto answered = [&] {
    if (--missing == 0) loop.stop();
  };
  JobInquiry inquiry(parts->runner, settings.htcondor, rules_of(*parts, options));
  inquiry.ask(id, why.schedd, [&](JobLook job) {
    scene.job = std::move(job);
    answered();
  });
  parts->cycle->observe(scene.now, [&](Observation seen) {
    scene.plan = parts->cycle->decide(seen);
    scene.seen = std::move(seen);
    answered();
  });
  TRY(loop.run());
  scene.group = group_for(scene.job.ad, *parts->backend, settings.policy);
  if (scene.group)
    scene.unmet = unmet_by_pilots(scene.job.ad, scene.group.value(), parts->backend->pilot_attributes());
  return answer_of(scene);
}

std::string why_text(const Json& answer) {
  const auto of = [](const Json& from, const char* key) { return from.at(key).get<std::string>(); };
  auto result = fmt::format("job {}", of(answer, "job"));
  if (const auto owner = of(answer, "owner"); !owner.empty()) result += " of " + owner;
  if (const auto schedd = of(answer, "schedd"); !schedd.empty()) result += " at " + schedd;
  result += '\n';
  int number = 0;
  for (const auto& finding : answer.at("findings")) {
    result += fmt::format("{}. {} [{}]\n", ++number, of(finding, "what"), of(finding, "key"));
    for (const auto* key : {"seen", "change", "who"}) {
      const auto text = of(finding, key);
      const bool empty = text.empty() || text == "nobody" || text == "nothing";
      if (!empty) result += fmt::format("   {:<7} {}\n", std::string(key) + ":", text);
    }
  }
  for (const auto& problem : answer.at("problems"))
    result += fmt::format("problem: {}\n", problem.get<std::string>());
  return result;
}

}  // namespace glidepod::provisioner
