#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "lib/kube/client.hpp"

namespace glidepod::kube {

// Tells the changes of a collection after a version, one by one, though the server closes the stream now and
// then. It is used for one pod and for a list of pods.
class Watch : public http::Operation {
 public:
  struct Source {
    std::string path;      // of the collection
    std::string selector;  // "labelSelector=...", encoded
    std::string version;   // changes after this one
    // The server is asked to end each stream after this time. A stream that does not end is on a dead
    // connection. 0: no limit.
    std::chrono::seconds stream_limit{0};
    Milliseconds late{30'000};  // how much later than it was asked to the server may end a stream
    // After a stream that ends sooner and has said nothing, there is a pause before the next one.
    Milliseconds shortest{1'000};
    // After so many failures in a row that may pass (no connection, 429, 5xx) it goes on from where it was,
    // with pauses that double: with 10 of them for some 40 s. It is not lost by these.
    int resumptions = 0;
    std::size_t longest_line = std::size_t{8} << 20;
  };
  struct Handlers {
    std::function<void(const nlohmann::json& object)> changed;
    std::function<void(const nlohmann::json& object)> deleted;
    // Called once, as the last handler. Changes may have been missed, so the present state has to be read.
    std::function<void(const Failure&)> lost;
  };
  // The client must outlive it. Handlers may destroy it.
  Watch(Client& client, Source source, Handlers handlers);
  ~Watch() override {
    *alive_ = false;
    client_.loop().cancel(again_);
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  void stream();
  void take(std::string_view data);
  void event(const std::string& line);
  void ended(const Result<http::Response>& end);
  bool passes(const Failure& failure) const;
  void lost(const Failure& failure);

  Client& client_;
  Source source_;
  Handlers handlers_;
  std::string line_;
  SteadyTime began_;
  int events_ = 0;    // the number of events of this stream
  int failures_ = 0;  // in a row
  Loop::TimerId again_ = 0;
  std::unique_ptr<http::Operation> call_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace glidepod::kube
