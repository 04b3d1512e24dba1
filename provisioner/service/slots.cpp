#include "provisioner/service/slots.hpp"

#include <algorithm>
#include <array>

#include "lib/base/text.hpp"
#include "provisioner/demand/trust.hpp"

namespace glidepod::provisioner {

namespace {

constexpr std::size_t k_longest = 1000;             // of what a pilot says
constexpr std::int64_t k_most = 1'000'000'000'000;  // of its numbers
constexpr std::chrono::seconds k_room_age{300};

std::string said(const condor::Ad& ad, std::string_view name) {
  auto text = ad.text(name);
  text.resize(std::min(text.size(), k_longest));
  return text;
}

SlotJob read_job(const condor::Ad& ad) {
  SlotJob job;
  job.id = said(ad, "JobId");
  // Else it is about a job that the slot had before.
  if (job.id.empty() || said(ad, "GlidepodJob") != job.id) return job;
  job.state = said(ad, "GlidepodState");
  job.container = said(ad, "GlidepodContainer");
  job.image = said(ad, "GlidepodImage");
  job.digest = said(ad, "GlidepodDigest");
  job.how = said(ad, "GlidepodHow");
  job.waits_for = said(ad, "GlidepodWaitsFor");
  if (const auto since = ad.evaluate("GlidepodSince"); since.is(condor::Value::Type::integer))
    job.since = Time(std::chrono::seconds(since.integer));
  if (const auto bind = ad.evaluate("GlidepodBindTime"); bind.is(condor::Value::Type::real))
    job.bind_s = bind.real;
  return job;
}

constexpr std::uint64_t k_most_binds = 1'000'000'000;  // a pilot can say anything

// Of "warm=3 fresh=0": what stands behind each of the names. A pilot has one such text, a cycle thousands.
template <std::size_t N, typename Name>
void read_counts(const std::string& text, const std::array<Name, N>& names,
                 std::array<std::uint64_t, N>& counts) {
  for (const auto& part : split(text, ' ')) {
    const auto sign = part.find('=');
    if (sign == std::string::npos) continue;
    const auto found = std::ranges::find(names, std::string_view(part).substr(0, sign));
    if (found == names.end()) continue;
    auto& count = counts[static_cast<std::size_t>(found - names.begin())];
    const auto number = parse_integer(std::string_view(part).substr(sign + 1));
    if (count == 0 && number && number.value() > 0)
      count = std::min(static_cast<std::uint64_t>(number.value()), k_most_binds);
  }
}

std::array<std::string, BindCounts::k_seconds.size()> texts_of_seconds() {
  std::array<std::string, BindCounts::k_seconds.size()> result;
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = fmt::format("{}", BindCounts::k_seconds[i]);
  return result;
}

Rare<BindCounts> read_binds(const condor::Ad& ad) {
  static const auto bounds = texts_of_seconds();
  const auto counts = said(ad, "GlidepodBinds");
  if (counts.empty()) return {};
  BindCounts result;
  read_counts(counts, BindCounts::k_names, result.counts);
  read_counts(said(ad, "GlidepodBindsWithin"), bounds, result.within);
  if (const auto seconds = ad.evaluate("GlidepodBindSeconds"); seconds.is(condor::Value::Type::real))
    result.seconds = std::clamp(seconds.real, 0.0, 1e9);
  return result;
}

// Pilots without payload containers have a START of their own, by which they may not take more jobs. An ad of
// five UPDATE_INTERVALs ago matches nothing by ours (60-start.config).
void read_room(const condor::Ad& ad, Slot& slot) {
  const auto number = [&ad](std::string_view name) -> std::optional<std::int64_t> {
    const auto value = ad.evaluate(name);
    if (!value.is(condor::Value::Type::integer) || value.integer < 0 || value.integer > k_most)
      return std::nullopt;
    return value.integer;
  };
  const auto containers = number("GlidepodPayloadContainers"), cpus = number("Cpus"),
             memory = number("Memory"), disk = number("Disk"), heard = number("LastHeardFrom");
  if (!ad.evaluate("PartitionableSlot").boolean || ad.text("State") != "Unclaimed" || !slot.trouble.empty() ||
      !containers || !cpus || !memory || !disk || !heard)
    return;
  const auto jobs = *containers - number("NumDynamicSlots").value_or(0);
  if (jobs <= 0) return;
  slot.room = of_slot(*cpus, *memory, *disk, number("GPUs").value_or(0), jobs);
  slot.room_until = Time(std::chrono::seconds(*heard)) + k_room_age;
  if (const auto until = number("GlidepodTakesJobsUntil"))
    slot.room_until = std::min(slot.room_until, Time(std::chrono::seconds(*until)));
}

}  // namespace

std::vector<std::string> slot_attributes(const std::string& pod_attribute) {
  return {"Name",
          "State",
          "EnteredCurrentState",
          "AuthenticatedIdentity",
          "RemoteOwner",
          pod_attribute,
          "JobId",
          "GlidepodJob",
          "GlidepodState",
          "GlidepodSince",
          "GlidepodContainer",
          "GlidepodImage",
          "GlidepodDigest",
          "GlidepodHow",
          "GlidepodBindTime",
          "GlidepodWaitsFor",
          "GlidepodContainers",
          "GlidepodTrouble",
          "GlidepodHeld",
          "DynamicSlot",
          "GlidepodBinds",
          "GlidepodBindsWithin",
          "GlidepodBindSeconds",
          "PartitionableSlot",
          "NumDynamicSlots",
          "GlidepodPayloadContainers",
          "GlidepodTakesJobsUntil",
          "LastHeardFrom",
          "Cpus",
          "Memory",
          "Disk",
          "GPUs"};
}

std::optional<Slot> read_slot(const condor::Ad& ad, const std::string& pod_attribute,
                              const Pattern& identities) {
  Slot slot;
  slot.pod = ad.text(pod_attribute);
  if (slot.pod.empty() || slot.pod.size() > k_longest_name ||
      !identities.surely_matches(ad.text("AuthenticatedIdentity")))
    return std::nullopt;
  slot.claimed = ad.text("State") == "Claimed";
  if (const auto entered = ad.evaluate("EnteredCurrentState");
      slot.claimed && entered.is(condor::Value::Type::integer))
    slot.claimed_at = Time(std::chrono::seconds(entered.integer));
  // "alice@domain" is the Owner "alice" of the job.
  const auto owner = ad.text("RemoteOwner");
  slot.owner = owner.substr(0, std::min(owner.find('@'), k_longest_name));
  slot.name = said(ad, "Name");
  slot.containers = said(ad, "GlidepodContainers");
  slot.binds = read_binds(ad);
  slot.trouble = said(ad, "GlidepodTrouble");
  // A dynamic slot has a copy from when it was made.
  if (!ad.evaluate("DynamicSlot").boolean) slot.held = said(ad, "GlidepodHeld");
  if (slot.claimed) slot.job = read_job(ad);
  read_room(ad, slot);
  return slot;
}

}  // namespace glidepod::provisioner
