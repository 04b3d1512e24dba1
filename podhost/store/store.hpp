#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/base/fd.hpp"
#include "lib/kube/api_error.hpp"
#include "podhost/store/pod_files.hpp"

namespace glidepod::podhost {

using Json = nlohmann::json;
using PodPtr = std::shared_ptr<const Json>;

struct Event {
  enum class Type : std::uint8_t { added, modified, deleted };
  Type type = Type::added;
  PodPtr pod;
  PodPtr previous;  // of a modified pod: to tell a selector what entered or left it
  std::int64_t version = 0;
};

// All pods, in memory and on disk, with the recent changes for watchers. Safe from any thread; a change is on
// disk before anybody sees it, but for statuses and deletions while the disk is full. Objects are never
// changed in place.
class Store {
 public:
  // Calls changed(uid) after every change made by a client, in the client's thread.
  Store(PodFiles& files, std::int64_t first_version, std::function<void(const std::string&)> changed);

  // Puts back what was on disk, before any client comes.
  void restore(Json pod);

  Result<PodPtr> create(Json pod);
  Result<PodPtr> get(const std::string& name_space, const std::string& name) const;
  PodPtr find(const std::string& uid) const;

  struct List {
    std::vector<PodPtr> pods;
    std::int64_t version = 0;
  };
  List list() const;

  // Replaces a pod by what the function makes of it. The function runs with writers locked out. What cannot
  // be saved is an error and changes nothing, unless it deletes the pod.
  using Change = std::function<Result<Json>(const Json& old_pod)>;
  Result<PodPtr> update(const std::string& name_space, const std::string& name, const Change& change);
  // For podhost's own changes; no event if the status is the same, no effect if the pod is gone. False if it
  // is told but could not be saved: the next call tries again, also if it says the same.
  bool set_status(const std::string& uid, Json status);
  void remove(const std::string& uid);

  // The changes after this version, or nothing if some of them are forgotten.
  std::optional<std::vector<Event>> since(std::int64_t version) const;
  std::int64_t version() const;

  // An eventfd that becomes readable with every change, for as long as it is kept.
  class Subscription {
   public:
    Subscription(Store* store, Fd fd) : store_(store), fd_(std::move(fd)) {}
    ~Subscription();
    Subscription(const Subscription&) = delete;
    Subscription& operator=(const Subscription&) = delete;
    int fd() const { return fd_.get(); }

   private:
    Store* store_;
    Fd fd_;
  };
  Result<std::unique_ptr<Subscription>> subscribe();

 private:
  PodPtr publish(Event::Type type, Json pod);
  PodPtr find_locked(const std::string& name_space, const std::string& name) const;

  PodFiles& files_;
  std::function<void(const std::string&)> changed_;
  std::mutex writing_;                  // taken first; held over disk writes
  std::set<std::string> unsaved_;       // pods whose status is not on disk; needs writing_
  mutable std::mutex mutex_;            // the members below
  std::map<std::string, PodPtr> pods_;  // by uid
  std::deque<Event> history_;
  std::int64_t version_;
  std::int64_t forgotten_;  // events up to this version are no longer in history_
  std::vector<int> subscribers_;
};

}  // namespace glidepod::podhost
