#pragma once

#include <string>

#include "podhost/http_server.hpp"
#include "podhost/store.hpp"

namespace glidepod::podhost {

// The Kubernetes API of pods over a Store. Called from any thread.
class Api {
 public:
  struct Settings {
    SpecRules rules;
    std::string token;  // for connections that need one; empty: none is accepted
  };
  Api(Store& store, const PodFiles& files, Settings settings)
      : store_(store), files_(files), settings_(std::move(settings)) {}

  // Whether new pods are accepted, and what /readyz says.
  void set_ready(bool ready) { ready_ = ready; }
  // The token, where one is needed; by a request's headers, before its body is read.
  std::optional<kube::ApiError> admit(const Connection& connection, const httplib::Request& request) const;
  // Answers a request that was admitted.
  void handle(const Connection& connection, const httplib::Request& request, httplib::Response& response);

 private:
  // "namespaces/NS/pods/NAME/log", taken apart.
  struct Target {
    std::string ns, name, subresource;
  };
  struct Answer {
    int code = 200;
    Json body;
    std::vector<std::string> warnings;
  };
  kube::Outcome<Answer> route(const Connection& connection, const httplib::Request& request,
                              httplib::Response& response, bool* answered);
  kube::Outcome<Answer> pods(const Connection& connection, const Target& target,
                             const httplib::Request& request, httplib::Response& response, bool* answered);
  kube::Outcome<Answer> create(const Target& target, const httplib::Request& request);
  kube::Outcome<Answer> list(const Connection& connection, const Target& target,
                             const httplib::Request& request, httplib::Response& response, bool* answered);
  kube::Outcome<Answer> change(const Connection& connection, const Target& target,
                               const httplib::Request& request);
  kube::Outcome<Answer> remove(const Target& target, const httplib::Request& request);
  kube::Outcome<Answer> preview(const Target& target, const Store::Change& change);
  std::optional<kube::ApiError> log(const Connection& connection, const Target& target,
                                    const httplib::Request& request, httplib::Response& response);
  std::optional<kube::ApiError> refuse(const Caller& caller, const Target& target,
                                       const httplib::Request& request);

  Store& store_;
  const PodFiles& files_;
  Settings settings_;
  std::atomic<bool> ready_{false};
};

// The parts of the API that never change: /version, /api, /apis, /api/v1; null for another path.
Json discovery(const std::string& path);

}  // namespace glidepod::podhost
