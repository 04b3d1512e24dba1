#pragma once

#include <string>

#include "lib/http/server.hpp"
#include "podhost/spec/pod_spec.hpp"
#include "podhost/store/store.hpp"

namespace glidepod::http {
struct Refusal;
}

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
  std::optional<http::Refusal> admit(const http::Connection& connection,
                                     const httplib::Request& request) const;
  // What a request is answered with that never gets here.
  static void refuse(const http::Refusal& refusal, httplib::Response& response);
  // Answers a request that was admitted.
  void handle(const http::Connection& connection, const httplib::Request& request,
              httplib::Response& response);

 private:
  // "namespaces/NS/pods/NAME/log", taken apart.
  struct Target {
    std::string name_space, name, subresource;
  };
  struct Answer {
    int code = 200;
    Json body;
    std::vector<std::string> warnings;
  };
  Result<Answer> route(const http::Connection& connection, const httplib::Request& request,
                       httplib::Response& response, bool* answered);
  Result<Answer> pods(const http::Connection& connection, const Target& target,
                      const httplib::Request& request, httplib::Response& response, bool* answered);
  Result<Answer> create(const Target& target, const httplib::Request& request);
  Result<Answer> list(const http::Connection& connection, const Target& target,
                      const httplib::Request& request, httplib::Response& response, bool* answered);
  Result<Answer> change(const http::Connection& connection, const Target& target,
                        const httplib::Request& request);
  Result<Answer> remove(const Target& target, const httplib::Request& request);
  Result<Answer> preview(const Target& target, const Store::Change& change);
  Result<void> log(const http::Connection& connection, const Target& target, const httplib::Request& request,
                   httplib::Response& response);
  Result<void> refuse_guest(const http::Caller& caller, const Target& target,
                            const httplib::Request& request);

  Store& store_;
  const PodFiles& files_;
  Settings settings_;
  std::atomic<bool> ready_{false};
};

// The parts of the API that never change: /version, /api, /apis, /api/v1; null for another path.
Json discovery(const std::string& path);

}  // namespace glidepod::podhost
