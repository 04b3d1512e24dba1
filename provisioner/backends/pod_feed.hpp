#pragma once

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "lib/kube/list.hpp"
#include "lib/kube/watch.hpp"
#include "provisioner/supply/supply.hpp"

namespace glidepod::provisioner {

// The pods of one namespace that have certain labels: listed page by page, then kept up to date by a watch.
// A watch that fails for a while goes on from where it was; they are listed anew when it cannot, and now and
// then in any case.
class PodFeed {
 public:
  enum class Mode : std::uint8_t { once, followed };
  struct Entry {
    Result<Pod> pod;  // or why it cannot be read
    std::string uid, version;
  };

  // Who wants to know of every pod at once.
  struct Listener {
    std::function<void()> begin;  // they are listed: forget all
    std::function<void(const nlohmann::json& pod)> changed;
    std::function<void(const std::string& name)> gone;
    std::function<void()> listed;
  };

  // Client and calls must outlive it. After so many failures in a row the watch goes on
  // (kube::Watch::Source).
  PodFeed(kube::Client& client, kube::Calls& calls, std::string path, std::string selector, Mode mode,
          int resumptions = 10)
      : client_(client),
        calls_(calls),
        path_(std::move(path)),
        selector_(std::move(selector)),
        mode_(mode),
        resumptions_(resumptions) {}

  void listen(Listener listener) { listener_ = std::move(listener); }
  // Calls done, from the loop, once pods() is up to date; or with the reason why that cannot be had.
  void read(Time now, std::function<void(Result<void>)> done);
  const std::map<std::string, Entry>& pods() const { return pods_; }
  // Calls see with each that could be read, and adds to the problems why others could not.
  void each(
      std::vector<std::string>& problems,
      const std::function<void(const std::string& name, const Entry& entry, const Pod& pod)>& see) const;
  // Whether any of them is in this state.
  bool has(PodState state) const;
  // A pod that was made just now, as the API answered: the watch may tell of it later.
  void made(const std::string& body);

 private:
  void follow();

  kube::Client& client_;
  kube::Calls& calls_;
  std::string path_, selector_;
  Mode mode_;
  int resumptions_;
  Listener listener_;
  void put(std::map<std::string, Entry>& pods, const nlohmann::json& pod);

  std::map<std::string, Entry> pods_;
  TextPool texts_;  // that many pods have
  std::string version_;
  Time listed_;
  std::unique_ptr<kube::Watch> watch_;  // none: the pods are not followed
};

}  // namespace glidepod::provisioner
