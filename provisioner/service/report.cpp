#include "provisioner/service/report.hpp"

#include <algorithm>

#include "lib/base/json.hpp"
#include "lib/base/text.hpp"
#include "lib/base/time.hpp"
#include "provisioner/service/drain_list.hpp"
#include "provisioner/service/running.hpp"

namespace glidepod::provisioner {

using Json = nlohmann::json;

namespace {

constexpr std::size_t k_most_owners_told = 20;  // of a clause that no pilot meets

// Biggest askers first; there may be hundreds.
Json owners_of(const GroupDemand& demand, const OwnerNaming& naming) {
  Json result = Json::object();
  for (const auto& [owner, idle] : demand.owners) result[naming ? naming(owner) : owner] = idle;
  return result;
}

}  // namespace

Json group_json(const Group& group) {
  return {{"cpus", group.cpus},
          {"memory_mb", group.memory_mb},
          {"disk_kb", group.disk_kb},
          {"gpus", group.gpus},
          {"gpu_types", group.gpu_types.str()},
          {"disk_volumes", group.disk_volumes.str()},
          {"labels", group.labels.str()}};
}

namespace {

Json places_json(const Decision& d) {
  Json result = Json::array();
  for (const auto& in : d.places) {
    Json entry = {
        {"place", in.place}, {"submit", in.submit}, {"waiting", in.waiting}, {"claimed", in.claimed}};
    if (in.stopped) entry["breaker"] = "open";
    if (in.why) entry["why"] = text_there(*in.why);
    result.push_back(std::move(entry));
  }
  return result;
}

Json place_json(const std::string& name, const PlaceSupply& place) {
  std::int64_t live = 0;
  for (const auto& [group, pods] : place.groups) live += pods.live();
  Json result = {{"place", name}, {"seen", place.unseen.empty()}, {"pods", live}};
  if (place.unseen.empty()) return result;
  result["unseen_for"] = place.unseen_for.count();
  result["why"] = place.unseen;
  return result;
}

std::string_view to_string(Offers::State state) {
  switch (state) {
    case Offers::State::no_pilot:
      return "no pilot";
    case Offers::State::asked:
      return "asked";
    case Offers::State::answered:
      return "answered";
  }
  return "?";
}

Json offers_json(const Offers& offers) {
  return {{"state", to_string(offers.state)}, {"offered", offers.offered}, {"matched", offers.matched},
          {"queried", offers.queried},        {"decides", offers.decides}, {"text", offers.to_string()}};
}

Json steps_json(const Decision& d) {
  Json result = Json::array();
  for (const auto& step : d.steps) {
    result.push_back({{"key", key(step.rule)}, {"text", text(step)}});
    if (!step.place.empty()) result.back()["place"] = step.place;
  }
  return result;
}

Json decision_json(const Decision& d, const OwnerNaming& naming) {
  Json states = Json::object();
  for (const auto& [state, count] : d.supply.states) states[std::string(to_string(state))] = count;
  return {{"group", group_json(d.group)},
          {"group_hash", d.group.hash()},
          {"image", d.image},
          {"idle", d.demand.idle},
          {"unmaterialized", d.demand.unmaterialized},
          {"owners", owners_of(d.demand, naming)},
          {"counted", d.counted},
          {"pods", states},
          {"waiting", d.supply.waiting},
          {"unmatched", d.supply.unmatched},
          {"claimed", d.supply.claimed},
          {"broken", d.supply.broken},
          {"wasted", d.supply.wasted},
          {"fit", d.fit},
          {"target", d.target},
          {"submit", d.submit},
          {"verdict", to_string(d.verdict)},
          {"steps", steps_json(d)}};
}

Json entry_of(const Decision& decision, const Plan& plan, const OwnerNaming& naming) {
  auto entry = decision_json(decision, naming);
  if (plan.breaker_open(decision)) entry["breaker"] = "open";
  if (!decision.places.empty()) entry["places"] = places_json(decision);
  if (decision.demand.offers) entry["offers"] = offers_json(*decision.demand.offers);
  return entry;
}

}  // namespace

std::vector<std::string> problems_of(const Observation& seen, const Applied* applied) {
  auto result = seen.demand.problems;
  result.insert(result.end(), seen.supply.problems.begin(), seen.supply.problems.end());
  if (applied) result.insert(result.end(), applied->problems.begin(), applied->problems.end());
  return result;
}

namespace {

// A member of the report that is an array; what has no room is counted.
struct Part {
  const char* key;
  std::string entries;
};

Part decisions_part(const Plan& plan, const OwnerNaming& naming, std::size_t most, Json& left_out) {
  const auto& all = plan.decisions;
  auto fit = fitting(
      all.size(), most, [&](std::size_t at) { return entry_of(all[at], plan, naming); },
      [&all](std::size_t at) { return -all[at].demand.idle - all[at].supply.live(); });
  if (!fit.left_out.empty()) {
    std::int64_t idle = 0;
    for (const auto at : fit.left_out) idle += all[at].demand.idle;
    left_out["decisions"] = fit.left_out.size();
    left_out["idle"] = idle;
  }
  return {"decisions", std::move(fit.entries)};
}

Part problems_part(const std::vector<std::string>& problems, std::size_t most, Json& left_out) {
  auto fit = fitting(
      problems.size(), most, [&problems](std::size_t at) { return Json(problems[at]); },
      [](std::size_t) { return 0; });
  if (!fit.left_out.empty()) left_out["problems"] = fit.left_out.size();
  return {"problems", std::move(fit.entries)};
}

Part unmade_part(const std::vector<Applied::Unmade>& unmade, std::size_t most) {
  auto fit = fitting(
      unmade.size(), most,
      [&unmade](std::size_t at) {
        const auto& [group, by_quota, why] = unmade[at];
        return Json{{"group_hash", group.hash()}, {"by_quota", by_quota}, {"why", why}};
      },
      [](std::size_t) { return 0; });
  return {"unmade", std::move(fit.entries)};
}

Json avoided_json(const Plan& plan, Time now) {
  Json result;
  for (const auto& [node, memory] : plan.history.nodes)
    if (now < memory.until)
      result.push_back({{"node", node},
                        {"failed", memory.failed},
                        {"since", memory.since.time_since_epoch().count()},
                        {"until", memory.until.time_since_epoch().count()}});
  return result;
}

// Of the clauses those that keep most jobs from counting come first. Owners are named by their pseudonyms, if
// at all, and then not by a clause either.
Json unmet_json(const UnmetDemands& all, const OwnerNaming& naming) {
  std::vector<const UnmetDemands::value_type*> order;
  for (const auto& entry : all) order.push_back(&entry);
  std::ranges::stable_sort(order, std::greater<>(), [](const auto* entry) { return entry->second.idle; });
  Json result = Json::array();
  for (const auto* entry : order) {
    const auto& [clause, unmet] = *entry;
    std::vector<std::pair<std::int64_t, std::string>> owners;
    bool names_one = false;
    for (const auto& [owner, idle] : unmet.owners) {
      owners.emplace_back(-idle, owner);
      names_one = names_one || clause.find(owner) != std::string::npos;
    }
    std::ranges::sort(owners);
    if (owners.size() > k_most_owners_told) owners.resize(k_most_owners_told);
    Json told = Json::object();
    for (const auto& [less, owner] : owners) told[naming ? naming(owner) : owner] = -less;
    const bool hidden = naming && names_one;
    result.push_back({{"clause", clause.empty() ? "other clauses"
                                 : hidden       ? "(names an owner)"
                                                : clause},
                      {"why", unmet.why},
                      {"idle", unmet.idle},
                      {"owners", std::move(told)}});
  }
  return result;
}

// All that has a size of its own.
Json head_json(const Observation& seen, const Plan& plan, const Applied* applied, const OwnerNaming& naming) {
  Json result = {{"time", time_text(seen.at)},
                 {"unix_time", seen.at.time_since_epoch().count()},
                 {"blind", plan.blind.value_or("")},
                 {"submit", plan.submissions()},
                 {"schedds", {{"asked", seen.demand.schedds_asked}, {"failed", seen.demand.schedds_failed}}},
                 {"bad_ads", seen.demand.bad_ads},
                 {"removals", Json::array()}};
  if (plan.equal_shares) result["equal_shares"] = *plan.equal_shares;
  if (!seen.demand.unmet.empty()) result["unmet"] = unmet_json(seen.demand.unmet, naming);
  if (!plan.drained.empty()) result["drained"] = drained_json(plan.drained);
  if (auto nodes = avoided_json(plan, seen.at); !nodes.is_null()) result["avoided_nodes"] = std::move(nodes);
  for (const auto& [pod, reason, mode] : plan.drainings)
    result["drainings"].push_back({{"pod", pod}, {"reason", reason}, {"mode", to_string(mode)}});
  for (const auto& [name, place] : seen.supply.places) result["places"].push_back(place_json(name, place));
  for (const auto& removal : plan.removals)
    result["removals"].push_back({{"pod", removal.pod}, {"reason", removal.reason}});
  if (!applied) return result;
  result["created"] = applied->created;
  result["removed"] = applied->removed;
  if (applied->drained > 0) result["told_drained"] = applied->drained;
  return result;
}

}  // namespace

std::string report_text(const Observation& seen, const Plan& plan, const Applied* applied,
                        const OwnerNaming& naming, std::size_t most, const Json& more) {
  // A fourth each at most, so that none takes all of it; pods have what is left.
  const auto share = most == k_any_size ? most : most / 4;
  Json left_out;
  auto head = head_json(seen, plan, applied, naming);
  if (!more.is_null()) head.update(more);
  std::vector<Part> parts;
  parts.push_back(decisions_part(plan, naming, share, left_out));
  parts.push_back(problems_part(problems_of(seen, applied), share, left_out));
  if (applied) parts.push_back(unmade_part(applied->unmade, share));
  auto text = json_text(head);
  text.pop_back();
  const auto add = [&text](const Part& part) {
    text += fmt::format(",\"{}\":[", part.key);
    text += part.entries;
    text += ']';
  };
  for (auto& part : parts) {
    add(part);
    part.entries = {};
  }
  const auto used = most == k_any_size ? 0 : text.size();
  add({"pods", pods_text(seen.pods, seen.slots, naming, most - std::min(used, most), &left_out)});
  if (!left_out.is_null()) text += ",\"left_out\":" + json_text(left_out);
  return text += '}';
}

Json report(const Observation& seen, const Plan& plan, const Applied* applied, const OwnerNaming& naming,
            std::size_t most) {
  return json_from(report_text(seen, plan, applied, naming, most, {}));
}

std::string reason_of(const Json& decision) {
  std::string result;
  for (const auto& step : member(decision, "steps")) {
    const auto text = text_view(step, "text");
    if (!text.empty()) result += fmt::format("{}{}", result.empty() ? "" : "; ", text);
  }
  return result;
}

std::optional<Seconds> long_past(const Json& report, Time now) {
  const auto age = now - Time(Seconds(report.value("unix_time", std::int64_t{0})));
  // Two cycles missed, and time for slow schedds.
  const auto most = 2 * Seconds(report.value("sleep_time", std::int64_t{120})) + Seconds(300);
  return age < most ? std::nullopt : std::optional(age);
}

Result<std::string> table(const Json& report) {
  try {
    std::string result = fmt::format(
        "{}  schedds: {} asked, {} failed\n", report.at("time").get<std::string>(),
        report.at("schedds").at("asked").get<int>(), report.at("schedds").at("failed").get<int>());
    if (const auto blind = report.at("blind").get<std::string>(); !blind.empty())
      result += fmt::format("BLIND: {}: nothing is decided\n", blind);
    std::vector<std::vector<std::string>> rows = {{"CPUS", "MEMORY", "DISK", "GPUS", "IDLE", "WAITING",
                                                   "UNMATCHED", "CLAIMED", "BROKEN", "SUBMIT", "VERDICT",
                                                   "REASON"}};
    for (const auto& d : report.at("decisions")) {
      const auto& group = d.at("group");
      auto& row = rows.emplace_back();
      for (const auto* key : {"cpus", "memory_mb", "disk_kb", "gpus"})
        row.push_back(json_text(group.at(key)));
      for (const auto* key : {"idle", "waiting", "unmatched", "claimed", "broken", "submit"})
        row.push_back(json_text(d.at(key)));
      row.push_back(d.at("verdict").get<std::string>());
      auto reason = reason_of(d);
      for (const auto* key : {"gpu_types", "disk_volumes", "labels"})
        if (const auto value = group.at(key).get<std::string>(); !value.empty())
          reason += fmt::format("; {} {}", key, value);
      if (d.contains("offers")) reason += "; " + d.at("offers").at("text").get<std::string>();
      if (row[10] == "unservable") reason += "; owners " + json_text(d.at("owners"));
      row.push_back(reason);
    }
    if (rows.size() > 1) result += columns(rows, 10);
    result += fmt::format("{} pods to make, {} to remove", report.at("submit").get<int>(),
                          report.at("removals").size());
    if (const auto number = member(report, "drainings").size(); number > 0)
      result += fmt::format(", {} to drain or kill", number);
    if (report.contains("created"))
      result += fmt::format("; {} made, {} removed", report.at("created").get<int>(),
                            report.at("removed").get<int>());
    result += '\n';
    for (const auto& node : report.value("avoided_nodes", Json::array()))
      result += fmt::format("node avoided until {}: {}: {} pilots failed in a row\n",
                            time_text(Time(Seconds(node.at("until").get<std::int64_t>()))),
                            node.at("node").get<std::string>(), node.at("failed").get<std::int64_t>());
    for (const auto& entry : member(report, "drained"))
      result += fmt::format("{} {}: {} since {}: {}\n", text_view(entry, "kind"), text_view(entry, "name"),
                            text_view(entry, "mode") == "kill" ? "killed" : "drained",
                            time_text(Time(Seconds(entry.at("since").get<std::int64_t>()))),
                            text_view(entry, "reason"));
    for (const auto& entry : member(report, "unmet"))
      result += fmt::format("no demand: {} idle jobs require {}: {}; owners {}\n",
                            entry.at("idle").get<std::int64_t>(), text_view(entry, "clause"),
                            text_view(entry, "why"), json_text(entry.at("owners")));
    if (const auto why = report.value("equal_shares", ""); !why.empty())
      result += fmt::format("equal shares, without the pool's priorities: {}\n", why);
    for (const auto& problem : report.at("problems"))
      result += fmt::format("problem: {}\n", problem.get<std::string>());
    for (const auto* key : {"decisions", "problems"})
      if (const auto& number = member(member(report, "left_out"), key); number.is_number_integer())
        result +=
            fmt::format("... and {} {} that a status has no room for\n", number.get<std::int64_t>(), key);
    return result;
  } catch (const Json::exception& failure) {
    return error("not a provisioner's status: {}", failure.what());
  }
}

}  // namespace glidepod::provisioner
