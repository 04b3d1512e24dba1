#pragma once

#include <string>

#include "lib/base/loop.hpp"
#include "podhost/runtime/podman.hpp"

namespace glidepod::podhost {

// Podman over its REST API on a Unix socket, version 4.3 or newer.
class PodmanRest : public Podman {
 public:
  explicit PodmanRest(std::string socket) : socket_(std::move(socket)) {}

  // From any thread: calls that have not ended by then fail with ECANCELED, as do later ones.
  void end_calls_at(SteadyTime when);

  Result<std::optional<ImageInfo>> find_image(const std::string& name) override;
  Result<void> pull(const std::string& name, const std::atomic<bool>& cancelled) override;
  Result<std::string> run_pod(const nlohmann::json& config) override;
  Result<std::optional<PodInfo>> find_pod(const std::string& name) override;
  Result<void> remove_pod(const std::string& name) override;
  Result<std::string> create_container(const nlohmann::json& config) override;
  Result<void> init_container(const std::string& id) override;
  Result<void> start_container(const std::string& id) override;
  Result<void> update_container(const std::string& id, const nlohmann::json& limits) override;
  Result<ContainerInfo> inspect_container(const std::string& id) override;
  Result<void> remove_container(const std::string& id) override;
  Result<std::vector<std::string>> list_containers(const std::string& label) override;
  Result<std::vector<std::string>> list_pods(const std::string& label) override;

 private:
  struct Answer {
    long status = 0;
    std::string body;
    nlohmann::json json() const;
    bool good() const { return status >= 200 && status < 400; }
    Error error() const;

   private:
    Error in_words() const;
  };
  struct Call {
    std::string method, path, body;
    long timeout_seconds = 120;
    const std::atomic<bool>* cancelled = nullptr;
  };
  Result<Answer> call(const Call& call);
  Result<void> expect(const Call& call, long also_accepted);
  Result<std::vector<std::string>> list(const std::string& path, const std::string& label);

  std::string socket_;
  std::atomic<SteadyTime> end_{SteadyTime::max()};
};

}  // namespace glidepod::podhost
