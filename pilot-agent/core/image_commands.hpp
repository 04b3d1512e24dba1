#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>

#include "lib/registry/document.hpp"
#include "pilot-agent/core/actions.hpp"
#include "pilot-agent/core/answers.hpp"
#include "pilot-agent/core/references.hpp"
#include "pilot-agent/core/types.hpp"

namespace glidepod::agent {

// What images run by themselves, for `apptainer run`. The agent asks the registry, since a process in a
// container cannot see its image's configuration.
class ImageCommands {
 public:
  ImageCommands(const Policy& policy, const References& references, Answers& answers, Actions& actions)
      : policy_(policy), references_(references), answers_(answers), actions_(actions) {}

  enum class Command : std::uint8_t {
    known,   // the request has its command line, or needs none
    asked,   // the registry will tell
    failed,  // the image has none, and so the request has failed
  };
  // Asks once for each request. A request that is not a `run` needs no answer.
  Command ask(Waiting& waiting, Time now);
  // The registry's answer. False: the request has failed.
  bool learn(Waiting& waiting, const registry::ImageCommand& command);

 private:
  const registry::ImageCommand* find(std::string_view exact_name) const;
  bool give(Waiting& waiting, const registry::ImageCommand& command);

  const Policy& policy_;
  const References& references_;
  Answers& answers_;
  Actions& actions_;
  // By digest, the oldest first. What a registry says of a digest never changes.
  std::deque<std::pair<std::string, registry::ImageCommand>> known_;
};

}  // namespace glidepod::agent
