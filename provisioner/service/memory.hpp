#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "provisioner/decide/decide.hpp"

namespace glidepod::provisioner {

// What decisions remember, for the process that goes on with them:
//
//   {"version": 1, "time": T, "cycle": N, "groups": [[cpus, memory_mb, disk_kb, gpus, "gpu_types",
//   "disk_volumes",
//    "labels"]], "images": [NAME],
//    "breakers": [[group, image, opened, closed, next_canary, pause]],   opened 0: it is closed
//    "nodes":    [[NAME, since, until, pause, failed]],
//    "surplus":  [[group, since]],
//    "left":     [[group, since]],
//    "failures", "crashes", "refusals": [[group, image, at, POD, NODE]],
//    "wasted", "used": [[group, at, how many]]}
//
// Groups and images are places in those lists, times seconds since 1970, and as exact as need be: of the
// pilots that ended only the ten minutes are kept. Who joined the pool is not in it, since the pods and their
// slots show it. Only the newest entries are there, so that the text has at most k_longest_memory bytes.
inline constexpr std::size_t k_longest_memory = std::size_t{48} << 10;
nlohmann::json memory_json(const Tracker& tracker, const History& history, Time now);

struct Recalled {
  std::map<Group, Fates> fates;
  History history;
};
// An error where it is not such a thing. Whatever is in it, no pause is longer than the settings allow, and
// nothing has happened later than now.
Result<Recalled> read_memory(const nlohmann::json& memory, const PolicySettings& settings, Time now);

// When it was written; the epoch where that cannot be read.
Time time_of_memory(const nlohmann::json& memory);

// Where the leader keeps it: an annotation of the lease. Null where it has none; discarded if it is no JSON.
inline constexpr const char* k_memory_annotation = "glidepod.io/memory";
// The text of an annotation; empty where there is none.
std::string annotation_of(const nlohmann::json& lease, const char* name);
nlohmann::json memory_in(const nlohmann::json& lease);

}  // namespace glidepod::provisioner
