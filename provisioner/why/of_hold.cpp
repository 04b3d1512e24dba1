#include "lib/base/text.hpp"
#include "provisioner/why/findings.hpp"

namespace glidepod::provisioner {

namespace {

using Who = Finding::Who;

// What a hold by these codes means; subcode -1 is any. docs/user.md has the same for people.
struct Hold {
  std::int64_t code, subcode;
  std::string_view key, what, change;
  Who who;
};
constexpr Hold k_holds[] = {
    {1, -1, "held-by-hand", "somebody put it on hold", "condor_release JOB", Who::owner},
    {15, -1, "held-by-hand", "it was submitted on hold", "condor_release JOB", Who::owner},
    {3, -1, "held-by-policy", "by its own periodic_hold", "see the reason; then condor_release JOB",
     Who::owner},
    {34, 102, "held-memory", "it was stopped at its memory limit",
     "a higher request_memory (condor_qedit JOB RequestMemory MB), then condor_release JOB", Who::owner},
    {21, 102, "held-memory", "it had more memory than its slot",
     "a higher request_memory (condor_qedit JOB RequestMemory MB), then condor_release JOB", Who::owner},
    {34, 104, "held-disk", "it had more files in /tmp and /var/tmp than its slot has disk",
     "a higher request_disk (condor_qedit JOB RequestDisk KB), then condor_release JOB", Who::owner},
    {21, 104, "held-disk", "it had more files than its slot has disk",
     "a higher request_disk (condor_qedit JOB RequestDisk KB), then condor_release JOB", Who::owner},
    {6, -1, "held-start", "its program could not be started", "correct executable, submit again", Who::owner},
    {12, -1, "held-transfer", "its files could not be brought back",
     "see the reason; then condor_release JOB", Who::owner},
    {13, -1, "held-transfer", "its files could not be brought to it",
     "correct transfer_input_files, then condor_release JOB", Who::owner},
    {26, -1, "held-by-policy", "by the access point's policy (SYSTEM_PERIODIC_HOLD)",
     "see the reason, or ask the access point's operator", Who::pool_operator},
};

// Words of a registry or a site in a hold for the image, code 19, in whatever case; the others are about its
// name.
struct ImageWords {
  std::string_view words, what, change;
  Who who;
};
constexpr ImageWords is_private(std::string_view words) {
  return {words, "its image is private, or its name is wrong",
          "correct container_image; or ask the operator for the registry's credentials", Who::owner};
}
constexpr ImageWords is_not_let_in(std::string_view words) {
  return {words, "the site lets only certain images run", "ask which images may run", Who::site_admin};
}
constexpr ImageWords k_image_words[] = {
    is_private("pull access denied"),
    is_private("unauthorized"),
    is_private("insufficient_scope"),
    is_private("403 forbidden"),
    is_private("requested access to the resource is denied"),
    {"no match for platform", "its image is for other processors", "build it for linux/amd64", Who::owner},
    is_not_let_in("pull policy of never"),
    is_not_let_in("denied the request"),  // of an admission webhook
    is_not_let_in("denied request"),      // of a ValidatingAdmissionPolicy
};

void explain(Finding& finding, std::int64_t code, std::int64_t subcode, const std::string& reason) {
  const auto set = [&finding](std::string_view key, std::string_view what, std::string_view change, Who who) {
    finding.key = key;
    finding.what = fmt::format("it is on hold: {}", what);
    finding.change = change;
    finding.who = who;
  };
  if (code == 19) {
    const auto words = lower_case(reason);
    for (const auto& row : k_image_words)
      if (words.find(row.words) != std::string::npos) return set("held-image", row.what, row.change, row.who);
    return set("held-image", "its image cannot be had or cannot start",
               "correct container_image and submit again", Who::owner);
  }
  for (const auto& row : k_holds)
    if (row.code == code && (row.subcode == subcode || row.subcode == -1))
      return set(row.key, row.what, row.change, row.who);
  set("held", "see the reason", "mend what the reason says, then condor_release JOB", Who::owner);
}

}  // namespace

Finding of_hold(const condor::Ad& job) {
  Finding finding;
  const auto code = job.evaluate("HoldReasonCode"), subcode = job.evaluate("HoldReasonSubCode");
  const auto reason = job.text("HoldReason");
  explain(finding, code.integer, subcode.integer, reason);
  finding.seen =
      fmt::format("{} (code {}, subcode {})", one_line(reason, 600), code.to_string(), subcode.to_string());
  return finding;
}

}  // namespace glidepod::provisioner
