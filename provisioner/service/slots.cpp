#include "provisioner/service/slots.hpp"

#include <algorithm>
#include <array>

#include "lib/base/text.hpp"

namespace glidepod::provisioner {

namespace {

constexpr std::size_t k_longest = 1000;  // of what a pilot says

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

std::optional<BindCounts> read_binds(const condor::Ad& ad) {
  static const auto bounds = texts_of_seconds();
  const auto counts = said(ad, "GlidepodBinds");
  if (counts.empty()) return std::nullopt;
  BindCounts result;
  read_counts(counts, BindCounts::k_names, result.counts);
  read_counts(said(ad, "GlidepodBindsWithin"), bounds, result.within);
  if (const auto seconds = ad.evaluate("GlidepodBindSeconds"); seconds.is(condor::Value::Type::real))
    result.seconds = std::clamp(seconds.real, 0.0, 1e9);
  return result;
}

}  // namespace

std::vector<std::string> slot_attributes(const std::string& pod_attribute) {
  return {"Name",
          "State",
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
          "GlidepodBindSeconds"};
}

std::optional<Slot> read_slot(const condor::Ad& ad, const std::string& pod_attribute,
                              const std::regex& identities) {
  Slot slot;
  slot.pod = ad.text(pod_attribute);
  if (slot.pod.empty() || !std::regex_match(ad.text("AuthenticatedIdentity"), identities))
    return std::nullopt;
  slot.claimed = ad.text("State") == "Claimed";
  slot.owner = ad.text("RemoteOwner");
  // "alice@domain" is the Owner "alice" of the job.
  slot.owner.resize(std::min(slot.owner.find('@'), slot.owner.size()));
  slot.name = said(ad, "Name");
  slot.containers = said(ad, "GlidepodContainers");
  slot.binds = read_binds(ad);
  slot.trouble = said(ad, "GlidepodTrouble");
  // A dynamic slot has a copy from when it was made.
  if (!ad.evaluate("DynamicSlot").boolean) slot.held = said(ad, "GlidepodHeld");
  if (slot.claimed) slot.job = read_job(ad);
  return slot;
}

}  // namespace glidepod::provisioner
