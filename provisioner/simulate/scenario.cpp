#include <algorithm>

#include "lib/base/text.hpp"
#include "provisioner/decide/places.hpp"
#include "provisioner/simulate/simulate.hpp"
#include "provisioner/supply/place.hpp"

namespace glidepod::provisioner {

namespace {

using Setter = std::function<Result<void>(const std::string&)>;
struct ScenarioKey {
  std::string name, help;
  Setter set;
};

Setter seconds(Seconds* target) {
  return [target](const std::string& value) -> Result<void> {
    std::string_view digits = value;
    std::int64_t factor = 1;
    for (const auto& [unit, size] : {std::pair{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}})
      if (digits.ends_with(unit)) {
        factor = size;
        digits.remove_suffix(1);
      }
    const auto number = parse_integer(digits);
    if (!number || number.value() < 0 || number.value() > 100'000'000)
      return error("must be a time such as 90s, 15m, 2h or 1d");
    *target = Seconds(number.value() * factor);
    return {};
  };
}

Setter integer(std::int64_t* target) {
  return [target](const std::string& value) -> Result<void> {
    const auto number = parse_integer(value);
    if (!number || number.value() < 0 || number.value() > 1'000'000'000)
      return error("must be a whole number");
    *target = number.value();
    return {};
  };
}

Setter real(double* target, double most) {
  return [target, most](const std::string& value) -> Result<void> {
    char* end = nullptr;
    const double number = std::strtod(value.c_str(), &end);
    if (value.empty() || *end != '\0' || !(number >= 0 && number <= most))
      return error("must be a number from 0 to {}", most);
    *target = number;
    return {};
  };
}

Setter attributes(PilotAttributes* pilots) {
  return [pilots](const std::string& value) -> Result<void> {
    pilots->more = TRY(parse_list(value));
    pilots->known = std::ranges::find(pilots->more, "*") == pilots->more.end();
    return {};
  };
}

std::vector<ScenarioKey> scenario_keys(Scenario& s) {
  return {{"length", "time to simulate", seconds(&s.length)},
          {"cycle", "time between two decisions", seconds(&s.cycle)},
          {"pilot_attributes", "as in [k8s]; *: jobs count whatever they require", attributes(&s.pilots)}};
}

std::vector<ScenarioKey> model_keys(Model& m, std::int64_t* seed) {
  return {
      {"scheduling", "time to a node, where there is room", seconds(&m.scheduling)},
      {"pull", "time to pull the images", seconds(&m.pull)},
      {"registration", "time from the start to the pool", seconds(&m.registration)},
      {"negotiation", "time between two rounds of matching", seconds(&m.negotiation)},
      {"idle_limit", "time after which a pilot without a job ends", seconds(&m.idle_limit)},
      {"lifetime", "time after which a pilot takes no more jobs; 0: it always does", seconds(&m.lifetime)},
      {"room", "pods that the cluster holds; 0: any number", integer(&m.room)},
      {"pull_failures", "share of image pulls that fail", real(&m.pull_failures, 1)},
      {"silent", "share of pilots that never register", real(&m.silent, 1)},
      {"pulls_fail_from", "every pull fails from here", seconds(&m.pulls_fail_from)},
      {"pulls_fail_until", "every pull fails until here", seconds(&m.pulls_fail_until)},
      {"blind_from", "the pool cannot be asked from here", seconds(&m.blind_from)},
      {"blind_until", "the pool cannot be asked until here", seconds(&m.blind_until)},
      {"seed", "number that the random draws begin with: another one, another day", integer(seed)}};
}

std::vector<ScenarioKey> place_keys(PlacePolicy& policy, ModelPlace& model) {
  return {{"weight", "its share of the pods; 0: what the others do not take", integer(&policy.weight)},
          {"max_pods", "cap: pods that have not ended; 0: no cap", integer(&policy.max_pods)},
          {"max_pods_per_cluster", "most waiting pods of a group", integer(&policy.max_pods_per_cluster)},
          {"max_submit_pods_per_cluster", "a group with this many pods gets no more",
           integer(&policy.max_submit_pods_per_cluster)},
          {"room", "pods that it holds; 0: any number", integer(&model.room)},
          {"down_from", "its API does not answer from here", seconds(&model.down_from)},
          {"down_until", "its API does not answer until here", seconds(&model.down_until)}};
}

std::vector<ScenarioKey> node_keys(NodeKind& n) {
  return {
      {"count", "nodes of this kind", integer(&n.count)},
      {"cpus", "CPUs of each; 0: any number", integer(&n.cpus)},
      {"memory", "memory of each in MB; 0: any", integer(&n.memory_mb)},
      {"pods", "pods that each takes; 0: any number", integer(&n.pods)},
      {"down_every", "time between two failures of a node, with its pods; 0: it never fails",
       seconds(&n.down_every)},
      {"down_for", "how long it is down", seconds(&n.down_for)},
      {"breaks_every", "time between two spells in which a node breaks the pilots that start there; 0: never",
       seconds(&n.breaks_every)},
      {"breaks_for", "how long such a spell lasts", seconds(&n.breaks_for)}};
}

// One [jobs NAME]: the stream, and how many like it.
struct Streams {
  JobStream one;
  std::vector<std::int64_t> cpus{1};
  std::int64_t groups = 1, owners = 0, memory_step = 32;

  std::vector<JobStream> all(const std::string& name) const {
    std::vector<JobStream> result(static_cast<std::size_t>(groups), one);
    for (std::size_t i = 0; i < result.size(); ++i) {
      const auto number = static_cast<std::int64_t>(i);
      result[i].group.cpus = cpus[i % cpus.size()];
      result[i].group.memory_mb += number * memory_step;
      if (owners > 0) result[i].owner = fmt::format("{}-{}", name, number % owners);
    }
    return result;
  }
};

Setter integers(std::vector<std::int64_t>* target) {
  return [target](const std::string& value) -> Result<void> {
    target->clear();
    for (const auto& part : split(value, ',')) TRY(integer(&target->emplace_back())(std::string(trim(part))));
    return {};
  };
}

std::vector<ScenarioKey> stream_keys(Streams& streams) {
  auto& j = streams.one;
  return {
      {"groups", "groups like this one", integer(&streams.groups)},
      {"cpus", "CPUs of each job; several numbers: the groups have them in turn", integers(&streams.cpus)},
      {"memory", "memory of each job in MB", integer(&j.group.memory_mb)},
      {"memory_step", "MB that each further group asks for more", integer(&streams.memory_step)},
      {"owners", "owners that the groups have in turn; NAME-0 is the first", integer(&streams.owners)},
      {"disk", "disk of each job in kB", integer(&j.group.disk_kb)},
      {"gpus", "GPUs of each job", integer(&j.group.gpus)},
      {"owner", "owner of the jobs",
       [&j](const std::string& value) -> Result<void> {
         j.owner = value;
         return {};
       }},
      {"start", "when the first jobs come", seconds(&j.start)},
      {"until", "when the last jobs come; 0: they always come", seconds(&j.until)},
      {"burst", "jobs at the start, of each group", integer(&j.burst)},
      {"per_hour", "jobs that come evenly after that, of each group", real(&j.per_hour, 1e6)},
      {"runtime", "mean run time of a job", seconds(&j.runtime)},
      {"leave", "when jobs that still wait leave the queue; 0: never", seconds(&j.leave)},
      {"requirements", "what they require of a slot; pilots have what ours have, and pilot_attributes",
       [&j](const std::string& value) -> Result<void> {
         j.requirements = value;
         return {};
       }},
      {"fits", "no: no node is large enough for their pods", [&j](const std::string& value) -> Result<void> {
         if (value != "yes" && value != "no") return error("must be one of: yes, no");
         j.fits = value == "yes";
         return {};
       }}};
}

Result<void> read(const Ini& ini, const std::string& section, const std::vector<std::string>& names,
                  const std::vector<ScenarioKey>& keys) {
  for (const auto& name : names) {
    const auto key =
        std::find_if(keys.begin(), keys.end(), [&name](const ScenarioKey& k) { return k.name == name; });
    if (key == keys.end()) return error("[{}]: unknown key '{}'", section, name);
    const auto value = TRY(ini.get(section, name));
    if (const auto set = key->set(value.value_or("")); !set)
      return error("[{}] {} = '{}': {}", section, name, *value, set.error().message());
  }
  return {};
}

}  // namespace

Result<Scenario> parse_scenario(const Ini& ini) {
  Scenario scenario;
  std::int64_t seed = 1;
  std::string policy = "[glidepod]\n";
  std::vector<PlacePolicy> places;
  for (const auto& [section, names] : ini.keys()) {
    if (section == "scenario") {
      TRY(read(ini, section, names, scenario_keys(scenario)));
    } else if (section == "model") {
      TRY(read(ini, section, names, model_keys(scenario.model, &seed)));
    } else if (section == "policy") {
      for (const auto& name : names) {
        const auto value = TRY(ini.get(section, name)).value_or("");
        if (name == "max_pods_per_cluster")
          TRY(integer(&scenario.policy.max_pods_per_cluster)(value).in("[policy] max_pods_per_cluster"));
        else if (name == "max_submit_pods_per_cluster")
          TRY(integer(&scenario.policy.max_submit_pods_per_cluster)(value).in(
              "[policy] max_submit_pods_per_cluster"));
        else
          policy += fmt::format("{} = {}\n", name, value);
      }
    } else if (section.starts_with("place ")) {
      auto& place = places.emplace_back();
      place.name = section.substr(std::string_view("place ").size());
      place.image = in_place(place.name, "simulated");
      TRY(read(ini, section, names, place_keys(place, scenario.places.emplace_back())));
    } else if (section.starts_with("jobs")) {
      Streams streams;
      TRY(read(ini, section, names, stream_keys(streams)));
      if (streams.groups > 10'000) return error("[{}]: more than 10,000 groups", section);
      const auto all = streams.all(std::string(trim(section.substr(4))));
      scenario.streams.insert(scenario.streams.end(), all.begin(), all.end());
    } else if (section.starts_with("nodes")) {
      auto& kind = scenario.nodes.emplace_back();
      kind.name = trim(section.substr(5));
      TRY(read(ini, section, names, node_keys(kind)));
    } else if (section != "default" || !names.empty()) {
      return error(
          "unknown section [{}]: there are [scenario], [model], [policy], [nodes NAME], [place NAME] "
          "and [jobs NAME]",
          section);
    }
  }
  if (scenario.streams.empty()) return error("there is no section [jobs NAME]: nothing would happen");
  if (scenario.cycle < Seconds(1) || scenario.model.negotiation < Seconds(1))
    return error("cycle and negotiation must be at least 1s");
  std::int64_t nodes = 0;
  for (const auto& kind : scenario.nodes) nodes += kind.count;
  if (nodes > 100'000) return error("more than 100,000 nodes");
  if (!scenario.nodes.empty() && (nodes == 0 || scenario.model.room > 0))
    return error("either room or nodes");
  if (!scenario.nodes.empty() && !places.empty()) return error("either places or nodes");
  if (scenario.length / scenario.cycle > 1'000'000) return error("length is more than a million cycles");
  Ini rules;
  TRY(rules.read(policy, "[policy]"));
  const auto loaded = TRY(parse_settings(rules));
  for (const auto& warning : loaded.warnings) return error("[policy]: {}", warning.text);
  scenario.policy.settings = loaded.settings.policy;
  scenario.policy.image = "simulated";
  set_places(scenario.policy, std::move(places));
  scenario.model.seed = static_cast<std::uint64_t>(seed);
  return scenario;
}

std::string describe_scenario() {
  Scenario scenario;
  Streams streams;
  NodeKind kind;
  PlacePolicy place;
  ModelPlace model;
  std::int64_t seed = 0;
  std::string result;
  const auto add = [&result](std::string_view section, const std::vector<ScenarioKey>& keys) {
    result += fmt::format("[{}]\n", section);
    for (const auto& key : keys) result += fmt::format("  {:<18} {}\n", key.name, key.help);
  };
  add("scenario", scenario_keys(scenario));
  add("model", model_keys(scenario.model, &seed));
  add("nodes NAME", node_keys(kind));
  add("place NAME", place_keys(place, model));
  add("jobs NAME", stream_keys(streams));
  return result +
         "[policy]\n  max_pods_per_cluster, max_submit_pods_per_cluster and the keys of [glidepod]\n";
}

}  // namespace glidepod::provisioner
