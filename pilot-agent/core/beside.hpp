#pragma once

#include <set>
#include <string>
#include <vector>

#include "pilot-agent/core/actions.hpp"
#include "pilot-agent/core/answers.hpp"
#include "pilot-agent/core/health.hpp"
#include "pilot-agent/core/image.hpp"
#include "pilot-agent/core/pulls.hpp"
#include "pilot-agent/core/queue.hpp"
#include "pilot-agent/core/references.hpp"
#include "pilot-agent/core/types.hpp"

namespace glidepod::agent {

// Requests whose image is pulled beside the pod (pulls.hpp). They wait in the queue and hold no container.
class Beside {
 public:
  Beside(const Policy& policy, const References& references, Queue& queue, Answers& answers, Health& health,
         Actions& actions)
      : pulls(policy),
        policy_(policy),
        references_(references),
        queue_(queue),
        answers_(answers),
        health_(health),
        actions_(actions) {}

  Pulls pulls;

  // Whether a container may switch to this image now. If not, the image is to be pulled first.
  bool may_switch(const Image& image, Time now);
  // Fails the requests for images that cannot be pulled, and returns these images. No container was touched
  // for them.
  std::vector<Image> fail_unpulled(Time now);
  // Asks for the images that requests wait for, and these, and no more for others.
  using Names = std::set<std::string, std::less<>>;
  void ask(Names names, Time now);
  // Why a request is still in the queue when its time is up.
  std::string why_queued(const Request& request) const;

 private:
  const Policy& policy_;
  const References& references_;
  Queue& queue_;
  Answers& answers_;
  Health& health_;
  Actions& actions_;
};

}  // namespace glidepod::agent
