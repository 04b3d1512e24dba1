#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/base/result.hpp"

namespace glidepod::podhost {

// The pods' folders below the state directory: DIR/pods/UID/{pod.json,status.json,volumes/,messages/,logs/}.
class PodFiles {
 public:
  explicit PodFiles(std::string state_dir) : root_(std::move(state_dir) + "/pods") {}

  Result<void> prepare() const;
  // What a restart needs; durable when it returns.
  Result<void> save_spec(const nlohmann::json& pod) const;
  // Outlives podhost, but perhaps not the machine's crash.
  Result<void> save_status(const std::string& uid, const nlohmann::json& status) const;
  // Unmounts what is mounted below the pod's folder and removes it.
  void erase(const std::string& uid) const;

  // Every pod on disk, its status included; folders without a readable pod are erased.
  std::vector<nlohmann::json> load() const;

  std::string folder(const std::string& uid) const { return root_ + "/" + uid; }
  std::string volume(const std::string& uid, const std::string& name) const;
  std::string message_file(const std::string& uid, const std::string& container, int attempt) const;
  // What is /etc/hosts in every container of the pod.
  std::string hosts_file(const std::string& uid) const { return folder(uid) + "/hosts"; }
  std::string log_file(const std::string& uid, const std::string& container, int attempt) const;

  // Unmounts what is mounted below the folder and removes it with all it holds, never following a link.
  static Result<void> remove_tree(const std::string& folder);

 private:
  std::string root_;
};

}  // namespace glidepod::podhost
