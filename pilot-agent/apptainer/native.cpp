#include "pilot-agent/apptainer/native.hpp"

#include <strings.h>

#include <array>

namespace glidepod::apptainer {

namespace {

constexpr std::array<NativeAttribute, 10> k_native = {{{"PreCmd", ""},
                                                       {"PostCmd", ""},
                                                       {"ToolDaemonCmd", ""},
                                                       {"TransferPlugins", ""},
                                                       {"WantDocker", "false"},
                                                       {"UseParrot", "false"},
                                                       {"SuspendJobAtExec", "false"},
                                                       {"EncryptExecuteDirectory", "false"},
                                                       {"StarterWaitForDebug", "0"},
                                                       {"JobStarterDebug", "false"}}};
constexpr std::string_view k_vanilla = "5";

bool same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

std::span<const NativeAttribute> native_attributes() {
  return k_native;
}

Result<void> check_native(const condor::JobAttributes& job) {
  const auto universe = job.find("JobUniverse");
  if (universe == job.end() || universe->second != k_vanilla)
    return error("only jobs of the universes vanilla and container run here");
  for (const NativeAttribute& attribute : k_native) {
    const auto found = job.find(attribute.name);
    if (found == job.end() || same(found->second, "undefined")) continue;
    if (!attribute.harmless.empty() && same(found->second, attribute.harmless)) continue;
    return error("{} is refused here: programs of a job run only in its container. Submit the job without it",
                 attribute.name);
  }
  return {};
}

}  // namespace glidepod::apptainer
