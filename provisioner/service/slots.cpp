#include "provisioner/service/slots.hpp"

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
          "GlidepodContainers"};
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
  if (slot.claimed) slot.job = read_job(ad);
  return slot;
}

}  // namespace glidepod::provisioner
