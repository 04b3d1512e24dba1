#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include <nlohmann/json_fwd.hpp>

#include "lib/base/loop.hpp"
#include "lib/base/result.hpp"
#include "lib/base/time.hpp"
#include "lib/kube/pod.hpp"
#include "pilot-agent/core/snapshot.hpp"

namespace glidepod::agent {

// What the pilot's containers do, in a file for people, and what `pilot-agent status` makes of it:
//
//   {"pod": "NAMESPACE/NAME", "version": "0.2.0", "time": TIME, "failures": 0, "given_up": false,
//    "waiting": [{"job": "12.0", "owner": "bob@pool", "slot": "slot1_2@host", "since": TIME, "image": NAME,
//    "pulling": false, "trouble": TEXT}], "pulls": [{"image": NAME, "state": "pulling", "trouble": TEXT}],
//    "containers": [{"name": "payload-0", "state": "running", "since": TIME, "job": "11.0", "owner":
//    "alice@pool", "slot": "slot1_1@host", "image": NAME, "digest": "sha256:...", "id": CONTAINER, "how":
//    "warm", "bind_s": 0.01, "wanted": NAME, "step": TEXT, "trouble": TEXT}],
//    "doubts": ["docker://a"], "binds": {"count": TEXT, "within": TEXT, "took_s": 7.5}}
//
// TIMEs are RFC 3339; what is not known is an empty string or missing. A second file has what of it goes into
// the slots' ads (slot_attributes.hpp).
class StatusFile {
 public:
  struct Paths {
    std::string status, slots;  // empty: no such file
  };
  // The loop must outlive it.
  StatusFile(Loop& loop, Paths paths, std::string pod, std::function<Snapshot()> look);
  // The files go, too: who does not find one has no pilot before them.
  ~StatusFile();
  StatusFile(const StatusFile&) = delete;
  StatusFile& operator=(const StatusFile&) = delete;

  // Something may have changed. Written a tenth of a second later, so that a bind waits for no disk, and only
  // if something has.
  void touch();

 private:
  nlohmann::json describe(const Snapshot& snapshot, WallTime now);
  void write_when_over(const Snapshot& snapshot, SteadyTime now);
  // Since when this is so.
  std::string since(const std::string& key, const std::string& what, WallTime now);
  void write();
  void write(const std::string& path, const std::string& text, unsigned mode);

  Loop& loop_;
  Paths paths_;
  std::string pod_;
  std::function<Snapshot()> look_;
  Loop::TimerId timer_ = 0, over_ = 0;
  std::string last_;  // as written, but for the time
  std::map<std::string, std::pair<std::string, WallTime>>
      since_;  // by container, or job that waits: what, and from when on
  bool warned_ = false;
};

// The file's content as a table. An Error: it is none of ours.
Result<std::string> status_table(const std::string& content, WallTime now);

}  // namespace glidepod::agent
