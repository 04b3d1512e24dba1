// What administrators write, and what the pool and lcli answer. The first byte says which parser gets the
// rest.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lib/base/json.hpp"
#include "lib/condor/ad_stream.hpp"
#include "provisioner/backends/lancium.hpp"
#include "provisioner/backends/pods.hpp"
#include "provisioner/demand/demand.hpp"
#include "provisioner/service/memory.hpp"
#include "provisioner/service/report.hpp"
#include "provisioner/simulate/simulate.hpp"
#include "provisioner/why/findings.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;

namespace {

void settings(std::string_view text) {
  Ini ini;
  if (!ini.read(text, "f")) return;
  if (const auto loaded = parse_settings(ini)) {
    const auto maker = PodMaker::create(loaded->settings.kubernetes, nullptr);
    if (maker) (void)maker->make({.disk_volumes = "a:/a", .gpus = 1, .gpu_types = "A"}, "pod");
    (void)job_query(loaded->settings.htcondor, "ns", CondorDemand::Namespace::matched);
  }
  (void)parse_scenario(ini);
  (void)parse_list(text);
  (void)parse_dict(text);
}

void ads(std::string_view text) {
  PolicySettings policy;
  policy.job_volumes = policy.job_labels = {"a"};
  condor::AdStream stream(
      [&policy](const condor::Ad& ad) {
        if (const auto group = group_of(ad, policy)) {
          (void)to_bucket(group->memory_mb, {"4096", "8192"});
          (void)unmet_by_pilots(ad, group.value(), {.known = true, .more = {"A*"}});
        }
        for (const auto& clause : clauses_of({}, ad)) (void)of_clause(clause, ad);
        (void)of_hold(ad);
      },
      [](const std::string&) {});
  // In two pieces, so that every state is met at a seam.
  stream.feed(text.substr(0, text.size() / 2));
  stream.feed(text.substr(text.size() / 2));
  (void)stream.end();
}

void pods(std::string_view text) {
  const auto json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return;
  (void)table(json);
  const auto maker = PodMaker::create({}, &json);
  if (!maker) return;
  (void)maker->pilot_attributes();
  const auto made = maker->make({}, "pod");
  if (!made) return;
  (void)group_of_pod(made.value());
  (void)resources_of_pod(made.value());
}

// What a lease or a status file is said to hold. What is read can be written, and read again.
void memory(std::string_view text) {
  const auto json = json_from(text);
  (void)time_of_memory(json);
  (void)memory_in(json);
  const Time now(Seconds(1'800'000'000));
  const auto recalled = read_memory(json, {}, now);
  if (!recalled) return;
  const auto written = memory_json(Tracker(recalled->fates), recalled->history, now);
  if (!read_memory(written, {}, now)) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::vector<std::string> problems;
  switch (data[0] % 6) {
    case 0:
      settings(text);
      break;
    case 1:
      ads(text);
      break;
    case 2:
      (void)condor::Ad().evaluate_expression(text);
      (void)condor::referenced_attributes(text);
      break;
    case 3:
      (void)parse_lancium_jobs(text, "wn", problems);
      break;
    case 4:
      pods(text);
      break;
    default:
      memory(text);
  }
  return 0;
}
