#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/loop.hpp"
#include "lib/base/workers.hpp"
#include "podhost/keep/decide.hpp"
#include "podhost/keep/pod_tasks.hpp"
#include "podhost/store/store.hpp"

namespace glidepod::podhost {

// How soon podman is asked again that was not there.
inline constexpr Seconds k_podman_away_retry{1};
inline Time now() {
  return std::chrono::system_clock::now();
}

class PodWorker;

// Opens and closes the sockets that pods get in their projected volumes.
class PodSockets {
 public:
  virtual ~PodSockets() = default;
  virtual Result<void> open(const std::string& uid, const std::string& path,
                            std::optional<std::int64_t> group) = 0;
  virtual void close(const std::string& uid) = 0;
};

// What the workers share. All of it is used in the loop's thread only, but for the tools, which the tasks
// use.
struct WorkerContext {
  Loop& loop;
  Inbox& inbox;
  Workers& workers;
  Store& store;
  PodSockets& sockets;
  TaskTools tools;
  BackoffRule backoff;
  PodFacts host;  // without a pod's own labels
  std::function<PodWorker*(const std::string& uid)> find;
  std::function<void(const std::string& uid)> gone;  // the pod has been forgotten; deletes its worker
};

// Keeps one pod as its object says: observes, decides, applies, publishes the status.
class PodWorker {
 public:
  PodWorker(WorkerContext& context, PodPtr pod);
  ~PodWorker();

  // Takes over what an earlier podhost left.
  void adopt(FoundPod found);
  // The object has a new spec or is to be deleted.
  void object_changed(PodPtr pod);
  // Ends pulls early, for podhost is to stop.
  void cancel();
  // To be called whenever something happened. May end in context.gone().
  void sync();

 private:
  // What belongs to a container beside its plain state.
  struct Handles {
    std::shared_ptr<std::atomic<bool>> cancelled;
    Fd next_process, process, next_conmon, conmon;
    int next_stop_signal = 15, stop_signal = 15;
  };

  // An ended container that podman still has.
  struct Remains {
    std::string container, id;
    int attempt;
  };

  // Runs task() in a worker thread, then done(*this, result) and sync() in the loop's.
  template <typename Task, typename Done>
  void launch(Task task, Done done);
  void apply(const Action& action);
  void create_sandbox();
  void remove_sandbox();
  void release();
  void forget();
  void prepare(ContainerState& container, bool restart);
  void prepared(const std::string& name, std::uint64_t token, const std::string& image,
                Result<Prepared> result);
  void discard(ContainerState& container);
  void start(ContainerState& container);
  void started(const std::string& name, std::uint64_t token, const Result<void>& result);
  void watch_run(ContainerState& container);
  void stop(ContainerState& container, Seconds grace, bool replaced);
  void kill(ContainerState& container);
  void resize(ContainerState& container);
  void ended(const std::string& name, const std::string& id);
  void learn_end(const std::string& name, const std::string& id, int attempt, Fd conmon);
  void bury_ended();
  void remove_later(const std::string& id);
  void start_failed(ContainerState& container, const Next& next);
  void adopt_container(FoundContainer found);
  void watch_sandbox(Fd pidfd);
  void sandbox_lost();
  void fail(const std::string& reason, const std::string& message);
  void drop_sandbox_watch();
  void open_socket();
  void publish();
  PodFacts facts() const;

  WorkerContext& context_;
  PodPtr pod_;
  PodSpec spec_;
  PodState state_;
  std::map<std::string, Handles> handles_;
  std::vector<Remains> ended_;
  Fd sandbox_process_;
  Loop::TimerId timer_ = 0;
  std::uint64_t last_token_ = 0;
  int sandbox_failures_ = 0;
};

template <typename Task, typename Done>
void PodWorker::launch(Task task, Done done) {
  ++state_.tasks;
  WorkerContext& context = context_;
  context.workers.run([&context, uid = spec_.uid, task = std::move(task), done = std::move(done)] {
    auto result = std::make_shared<decltype(task())>(task());
    context.inbox.post([&context, uid, result, done] {
      PodWorker* worker = context.find(uid);
      if (!worker) return;
      --worker->state_.tasks;
      done(*worker, std::move(*result));
      worker->sync();
    });
  });
}

}  // namespace glidepod::podhost
