#pragma once

#include <map>
#include <memory>
#include <string>

#include "podhost/keep/pod_worker.hpp"

namespace glidepod::podhost {

// All pods' workers, in the loop's thread.
class Reconciler {
 public:
  explicit Reconciler(WorkerContext context);

  // Takes over what an earlier podhost left running and removes what belongs to no pod.
  void adopt(Found found);
  // A client changed this pod. From any thread.
  void changed(const std::string& uid);
  // Deletes every pod, for --stop-pods; calls done() when they are gone.
  void stop_all(std::function<void()> done);
  // Ends long tasks early; the pods stay as they are.
  void cancel();

 private:
  void look(const std::string& uid);
  WorkerContext context_;
  std::map<std::string, std::unique_ptr<PodWorker>> workers_;
  std::function<void()> all_gone_;
};

}  // namespace glidepod::podhost
