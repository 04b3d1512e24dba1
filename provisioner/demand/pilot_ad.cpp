#include "provisioner/demand/pilot_ad.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "lib/base/text.hpp"
#include "lib/condor/clauses.hpp"
#include "lib/condor/evaluator.hpp"
#include "lib/condor/tokens.hpp"

namespace glidepod::provisioner {

namespace {

using condor::Ad;
using condor::Token;
using condor::Value;

// What is larger than this is left to the negotiator.
constexpr std::size_t k_longest_requirements = 20'000, k_most_clauses = 100, k_most_names = 200;
constexpr int k_deepest_alternatives = 8;

// How HTCondor's own attributes of slots and daemons begin, of any version, and those of
// images/pilot/config.d, which is more than there are: what is not known to be missing may be there. In lower
// case. "has" is apart: HTCondor has HasDocker and has_avx2, while sites have HAS_ANYTHING.
constexpr const char* k_beginnings =
    "accepted activation activity address arch assigned authenticat available backfill broken canhib "
    "cgroup child claim client clock cloud collector condor console consumption cpu current daemon "
    "detected device disk docker dotnet drain dslot dynamicslot entered expectedm fetch filesys "
    "glidepod gpus gputypes hardware hibern hookkey islocal iswake java job k8s keyboard kflops "
    "labels last loadavg machine max memory microarch mips monitor my name network newdslot nextfetch "
    "num offline opsys partitionableslot preempt private pslot public rank recent remote require "
    "reserved resource retire singularity slot start state subnet target timeto total uid unhib "
    "update utsname virtual vm wakeon windows within";
// Of these an access point rounds what it answers (SCHEDD_ROUND_ATTR_...), or a job has them only while
// somebody looks at it: they decide nothing here.
constexpr std::string_view k_unsteady[] = {
    "currenttime",           "diskusage",       "executablesize", "imagesize", "memoryusage", "numckpts",
    "proportionalsetsizekb", "residentsetsize", "servertime"};
bool is_unsteady(std::string_view name) {
  // "submitt": the negotiator's words on whose job it is.
  return name.starts_with("submitt") || std::ranges::find(k_unsteady, name) != std::end(k_unsteady);
}
// Of has_ and what follows.
constexpr std::string_view k_processor[] = {"avx", "sse", "ssse", "singularity"};

bool is_condors(std::string_view name) {
  static const auto beginnings = split(k_beginnings, ' ');
  const auto begins = [](std::string_view whole, const auto& list) {
    return std::ranges::any_of(list, [whole](std::string_view known) { return whole.starts_with(known); });
  };
  if (name.starts_with("has_")) return begins(name.substr(4), k_processor);
  return name.starts_with("has") || begins(name, beginnings);
}

// One of the slot's sizes that jobs use up, or that a job's own slot has less of: at most this.
std::optional<std::int64_t> most_of(const Group& group, std::string_view lower_name) {
  if (lower_name == "cpus" || lower_name == "totalslotcpus") return group.cpus;
  if (lower_name == "memory" || lower_name == "totalslotmemory") return group.memory_mb;
  if (lower_name == "gpus") return group.gpus;
  return std::nullopt;
}

// What every pilot in a pod of the group has.
std::optional<Value> value_of(const Group& group, std::string_view lower_name) {
  if (lower_name == "opsys") return Value::of(std::string("LINUX"));
  if (lower_name == "totalcpus") return Value::of(group.cpus);
  if (lower_name == "totalmemory") return Value::of(group.memory_mb);
  return std::nullopt;
}

bool is_never_true(const Value& value) {
  if (!condor::is_known(value)) return false;
  const auto truth = condor::to_truth(value);
  return truth.is(Value::Type::undefined) || (truth.is(Value::Type::boolean) && !truth.boolean);
}

// One job's requirements beside what is known of its pilots.
class PilotSight {
 public:
  PilotSight(const Ad& job, const Group& group, const PilotAttributes& pilots)
      : job_(job), group_(group), pilots_(pilots) {}

  std::optional<Unmet> first_unmet(std::string_view requirements) {
    if (requirements.size() > k_longest_requirements) return std::nullopt;
    for (const auto& clause : condor::conjuncts(requirements))
      if (is_never(clause, k_deepest_alternatives)) return told(clause);
    return std::nullopt;
  }

 private:
  // The job's part of the clause is followed through its own expressions; none: too much of that, or no
  // expression.
  std::optional<std::set<std::string, std::less<>>> names_in(const std::string& clause) const {
    std::set<std::string, std::less<>> result;
    std::vector<std::string> texts{clause};
    while (!texts.empty()) {
      const auto names = condor::referenced_attributes(texts.back());
      texts.pop_back();
      if (!names) return std::nullopt;
      for (const auto& name : names.value()) {
        const auto lower = lower_case(name);
        if (!result.insert(lower).second) continue;
        if (result.size() > k_most_names) return std::nullopt;
        if (auto written = job_.written(lower); written != "undefined") texts.push_back(std::move(written));
      }
    }
    return result;
  }

  // The slot as far as the names go: what it may have has the unknown value, what it lacks is not there.
  std::optional<Ad> slot_for(const std::string& clause) const {
    const auto names = names_in(clause);
    if (!names) return std::nullopt;
    if (std::ranges::any_of(*names, is_unsteady)) return std::nullopt;
    Ad slot;
    for (const auto& name : *names)
      if (auto value = value_of(group_, name))
        slot.set(name, *std::move(value));
      else if (may_have(pilots_, name))
        slot.set(name, condor::unknown("of the pilot"));
    return slot;
  }

  // An && is true where both sides are, an || where one is.
  bool is_never(const std::string& clause, int depth) {
    if (++looked_at_ > k_most_clauses) return false;
    const auto never = [&](const std::string& part) { return is_never(part, depth - 1); };
    const auto parts = condor::conjuncts(clause), alternatives = condor::disjuncts(clause);
    if (depth > 0 && parts.size() > 1) return std::ranges::any_of(parts, never);
    if (depth > 0 && alternatives.size() > 1) return std::ranges::all_of(alternatives, never);
    const auto slot = slot_for(clause);
    return slot && (is_never_true(job_.evaluate_expression(clause, *slot)) || is_beyond(clause, *slot));
  }

  // "TARGET.Memory > x", where x is as much as the slot has at most, or more.
  bool is_beyond(std::string_view clause, const Ad& slot) const {
    auto name = condor::next_token(clause);
    bool of_slot = false;
    if (name.type == Token::Type::name && lower_case(name.text) == "target") {
      if (condor::next_token(clause).text != ".") return false;
      name = condor::next_token(clause);
      of_slot = true;
    }
    if (name.type != Token::Type::name) return false;
    const auto lower = lower_case(name.text);
    const auto most = most_of(group_, lower);
    if (!most || (!of_slot && job_.written(lower) != "undefined")) return false;
    const auto symbol = condor::next_token(clause).text;
    if (symbol != ">" && symbol != ">=") return false;
    // Nothing that binds looser than the comparison, or as it does.
    static constexpr std::string_view k_looser[] = {
        "||", "&&", "==", "!=", "=?=", "=!=", "<", "<=", ">", ">=", "?", ":", "?:", "is", "isnt"};
    auto rest = clause;
    for (auto token = condor::next_token(rest); token.type != Token::Type::end;
         token = condor::next_token(rest)) {
      if (token.type == Token::Type::invalid) return false;
      if (token.type != Token::Type::string &&
          std::ranges::find(k_looser, lower_case(token.text)) != std::end(k_looser))
        return false;
    }
    const auto least = job_.evaluate_expression(clause, slot);
    if (least.is(Value::Type::undefined)) return true;
    return condor::is_number(least) && is_never_true(condor::apply_operator(symbol, Value::of(*most), least));
  }

  Unmet told(const std::string& clause) const {
    Unmet result{.clause = clause, .why = {}, .lacks = {}};
    std::vector<std::string> has;
    std::set<std::string> seen;
    const auto names = condor::referenced_attributes(clause);
    for (const auto& name : names ? names.value() : std::vector<std::string>()) {
      const auto lower = lower_case(name);
      const bool of_slot = lower_case(clause).find("target." + lower) != std::string::npos;
      if (!seen.insert(lower).second || (!of_slot && job_.written(lower) != "undefined")) continue;
      if (const auto value = value_of(group_, lower))
        has.push_back(fmt::format("{} = {}", name, value->to_string()));
      else if (const auto most = most_of(group_, lower))
        has.push_back(fmt::format("{} of at most {}", name, *most));
      else if (!may_have(pilots_, lower))
        result.lacks.push_back(name);
    }
    if (!result.lacks.empty())
      result.why = fmt::format("pilots have no {}", fmt::join(result.lacks, ", "));
    else if (!has.empty())
      result.why = fmt::format("its pilot has {}", fmt::join(has, ", "));
    else
      result.why = "it is not true of the job itself";
    return result;
  }

  const Ad& job_;
  const Group& group_;
  const PilotAttributes& pilots_;
  std::size_t looked_at_ = 0;
};

}  // namespace

bool may_have(const PilotAttributes& pilots, std::string_view attribute) {
  const auto name = lower_case(attribute);
  if (!pilots.known || is_condors(name)) return true;
  return std::ranges::any_of(pilots.more, [&name](const std::string& one) {
    const auto known = lower_case(one);
    return known.ends_with('*') ? name.starts_with(std::string_view(known).substr(0, known.size() - 1))
                                : name == known;
  });
}

std::optional<Unmet> unmet_by_pilots(const Ad& job, const Group& group, const PilotAttributes& pilots) {
  if (!pilots.known) return std::nullopt;
  const auto requirements = job.written("Requirements");
  if (requirements == "undefined") return std::nullopt;
  return PilotSight(job, group, pilots).first_unmet(requirements);
}

}  // namespace glidepod::provisioner
