#include "provisioner/offline/ads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "lib/base/text.hpp"
#include "lib/condor/clauses.hpp"
#include "lib/condor/job_ad.hpp"
#include "lib/pattern/pattern.hpp"
#include "provisioner/demand/contract.hpp"

namespace glidepod::provisioner {

namespace {

// What is the one pilot's own, or the collector's, and would be wrong of a pod that is not there. In lower
// case, as an Ad has its names.
bool is_own(std::string_view name) {
  static constexpr std::string_view k_own[] = {
      "addressv1",          "authenticatedidentity",  "authenticationmethod",
      "condorloadavg",      "daemonlastreconfigtime", "daemonshutdown",
      "daemonshutdownfast", "enteredcurrentactivity", "enteredcurrentstate",
      "hardwareaddress",    "k8sphysicalhostname",    "lastheardfrom",
      "lastupdate",         "machinelastmatchtime",   "machinematchcount",
      "monitorselfage",     "mycurrenttime",          "numdynamicslots",
      "offlinematches",     "privatenetworkname",     "publicnetworkipaddr"};
  static constexpr std::string_view k_kept[] = {"glidepod", "glidepodendsat", "glidepodpayloadcontainers",
                                                "glidepodpodlifetime", "glidepodversion"};
  if (name.starts_with("glidepod")) return std::ranges::find(k_kept, name) == std::end(k_kept);
  return std::ranges::find(k_own, name) != std::end(k_own) || name.starts_with("child") ||
         name.starts_with("updates") || name.starts_with("recent") || name.starts_with("monitorself");
}

// START without what it says of the one pilot's age (images/pilot/config.d/60-start.config): a limit of its
// life in numbers, and that its ad is not of long ago. A pod to be made has its life before it, and this ad
// does not age.
std::string ageless(std::string_view start) {
  static const auto limit = Pattern::compile(R"([0-9]+ <= 0 \|\| time\(\) < [0-9]+ \+ [0-9]+)").value();
  std::vector<std::string> kept;
  for (const auto& clause : condor::conjuncts(start))
    if (clause.find("LastHeardFrom") == std::string::npos && !limit.surely_matches(clause))
      kept.push_back("(" + clause + ")");
  return kept.empty() ? "true" : fmt::format("{}", fmt::join(kept, " && "));
}

std::int64_t number_in(const condor::Ad& ad, std::string_view name) {
  const auto value = ad.evaluate(name);
  return value.is(condor::Value::Type::integer) ? value.integer : 0;
}

// What a pod's slot has of each, and what the startd says thrice of it.
void set_sizes(condor::Ad& ad, const Group& group) {
  using condor::Value;
  // images/pilot/config.d/30-resources.config: up to 2 MiB more for each job that runs at once.
  const auto spare = 2048 * number_in(ad, "GlidepodPayloadContainers");
  const std::pair<std::string_view, std::int64_t> sizes[] = {{"Cpus", group.cpus},
                                                             {"Memory", group.memory_mb},
                                                             {"Disk", group.disk_kb + spare},
                                                             {"GPUs", group.gpus}};
  for (const auto& [name, size] : sizes)
    for (const auto* prefix : {"", "Total", "TotalSlot"})
      if (size > 0 || name != "GPUs") ad.set(fmt::format("{}{}", prefix, name), Value::of(size));
  // The provisioner's texts (pods.hpp has the variables, images/pilot/config.d/80-identity.config the rest).
  ad.set("Labels", Value::of(group.labels.str()));
  ad.set("DiskVolumes", Value::of(group.disk_volumes.str()));
  ad.set("GPUTypes", Value::of(group.gpu_types.str()));
}

}  // namespace

std::string offline_ad(const condor::Ad& pilot, const Group& group, std::int64_t number, Seconds lifetime) {
  using condor::Value;
  auto ad = pilot;
  set_sizes(ad, group);
  const auto name = fmt::format("{}-{}.{}", group.hash(), number, pilot.text("K8SProvisionerName"));
  // No digit before the "@": the negotiator would take it for one slot of several, and tell the first one
  // too.
  ad.set("Name", Value::of("offline@" + name));
  ad.set("Machine", Value::of(name));
  ad.set("K8SPodName", Value::of(name));
  // By these the negotiator's word on an ad finds it. Nobody is there to be spoken to.
  for (const auto* address : {"MyAddress", "StartdIpAddr"})
    ad.set(address, Value::of(std::string("<127.0.0.1:0>")));
  ad.set("SlotID", Value::of(std::int64_t{1}));
  ad.set("State", Value::of(std::string("Unclaimed")));
  ad.set("Activity", Value::of(std::string("Idle")));
  if (const auto start = pilot.written("Start"); start != "undefined")
    ad.set_expression("Start", ageless(start));
  // Its life is before it, but for the time until it has joined the pool (60-start.config).
  if (number_in(pilot, "GlidepodPodLifetime") > 0)
    ad.set_expression("GlidepodEndsAt", fmt::format("time() + GlidepodPodLifetime - {}", k_to_join.count()));
  // Below any slot that is there: the pre-job rank has ten million times this, and less than a hundred
  // thousand for each CPU.
  ad.set("Rank", Value::of(-1000 - number));
  ad.set("Offline", Value::of(true));
  // Should the pool have a condor_rooster: there is nothing for it to wake.
  ad.set("Unhibernate", Value::of(false));
  ad.set("ClassAdLifetime", Value::of(static_cast<std::int64_t>(lifetime.count())));
  std::string result;
  for (const auto& attribute : ad.names())
    if (!is_own(attribute))
      result += fmt::format("{} = {}\n", attribute, one_line(ad.written(attribute), 100'000));
  return fmt::format("{}{} = true\nGlidepodOfflineGroup = {}\nGlidepodOfflineNumber = {}\n\n", result,
                     k_offline_mark, condor::quote(group.hash()), number);
}

std::vector<std::string> offer_attributes() {
  return {"Name", "GlidepodOfflineGroup", "GlidepodOfflineNumber", "LastHeardFrom", "MachineLastMatchTime"};
}

void read_offer(const condor::Ad& ad, Board& board) {
  const auto group = ad.text("GlidepodOfflineGroup");
  const auto number = ad.evaluate("GlidepodOfflineNumber"), heard = ad.evaluate("LastHeardFrom");
  if (group.empty() || !number.is(condor::Value::Type::integer) || !heard.is(condor::Value::Type::integer))
    return;
  board[group].push_back(
      {number.integer, Time(Seconds(heard.integer)), Time(Seconds(number_in(ad, "MachineLastMatchTime")))});
}

}  // namespace glidepod::provisioner
