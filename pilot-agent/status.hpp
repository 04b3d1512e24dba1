#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "lib/base/loop.hpp"
#include "lib/base/result.hpp"
#include "lib/base/time.hpp"
#include "lib/kube/pod.hpp"
#include "pilot-agent/core/snapshot.hpp"

namespace glidepod::agent {

// What the pilot's containers do, in a file for people, and what `pilot-agent status` makes of it:
//
//   {"pod": "NAMESPACE/NAME", "version": "0.1.0", "time": TIME, "failures": 0, "given_up": false,
//    "waiting": ["12.0"], "pulls": [{"image": NAME, "state": "pulling", "trouble": TEXT}], "containers":
//    [{"name": "payload-0", "state": "running", "since": TIME, "job": "11.0", "owner": "alice@pool", "image":
//    NAME, "digest": "sha256:...", "id": CONTAINER, "wanted": NAME, "step": TEXT, "trouble": TEXT}]}
//
// TIMEs are RFC 3339; what is not known is an empty string.
class StatusFile {
 public:
  // The loop must outlive it. An empty path: no file.
  StatusFile(Loop& loop, std::string path, std::string pod, std::function<Snapshot()> look);
  // The file goes, too: who does not find one has no pilot before them.
  ~StatusFile();
  StatusFile(const StatusFile&) = delete;
  StatusFile& operator=(const StatusFile&) = delete;

  // Something may have changed. Written a tenth of a second later, so that a bind waits for no disk, and only
  // if something has.
  void touch();

 private:
  void write();

  Loop& loop_;
  std::string path_, pod_;
  std::function<Snapshot()> look_;
  Loop::TimerId timer_ = 0;
  std::string last_;  // as written, but for the time
  std::map<std::string, std::pair<std::string, WallTime>>
      since_;  // by container: state and job, from when on
  bool warned_ = false;
};

// The file's content as a table. An Error: it is none of ours.
Result<std::string> status_table(const std::string& content, WallTime now);

}  // namespace glidepod::agent
