#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "pilot-agent/core/containers.hpp"
#include "pilot-agent/core/image.hpp"
#include "pilot-agent/core/references.hpp"
#include "pilot-agent/core/types.hpp"

namespace glidepod::agent {

// Jobs whose input files HTCondor is still bringing. Each asks for a container when they are there, a second
// later or an hour, or never. Until then an idle container gets its image. It stays anybody's: a job that is
// here goes before one that is announced.
class Announced {
 public:
  Announced(const Policy& policy, const References& references, const Containers& containers)
      : policy_(policy), references_(references), containers_(containers) {}

  // Forgotten after bind_deadline, and when there are more of them than containers.
  void add(Request job, Time now);
  // The job asks for its container. Returned: why its image cannot be had, if that has just been tried and is
  // the user's fault. A second try would say the same, after the kubelet's pause.
  std::optional<std::string> asks(const Request& job, Time now);
  // An idle container could not get this image, by the user's fault.
  void failed(const Image& image, const std::string& why, Time now);
  // Which containers they will find as they want them; null is among them where one will find none.
  std::set<const Container*> awaited() const;
  // The image of the first of them that will find none; may_have: whether it may be had now.
  std::optional<Image> unserved(const std::function<bool(const Image&)>& may_have) const;
  // The names of all their images.
  std::set<std::string, std::less<>> names() const;

  void on_time(Time now);
  std::optional<Time> next_deadline() const;

 private:
  struct One {
    struct Failure {
      std::string why;
      Time until;  // then it is no news
    };
    Request job;
    Time until;
    std::optional<Failure> failure = {};
  };
  // For each of them the container that it will find; null: none.
  std::vector<const Container*> found() const;
  bool serves(const Container& container, const Request& job) const;

  const Policy& policy_;
  const References& references_;
  const Containers& containers_;
  std::vector<One> all_;  // in the order in which they came
};

}  // namespace glidepod::agent
