// Requests whose image is pulled beside the pod (pulls.hpp). They wait in the queue and hold no container.

#include "pilot-agent/core/core.hpp"

namespace glidepod::agent {

// Fails the requests for images that cannot be pulled. No container was touched for them.
void Core::fail_unpulled(Time now) {
  for (const Pulls::Verdict& verdict : pulls_.take_verdicts()) {
    queue_.erase_if([&](const Waiting& waiting) {
      const bool is_it = references_.asked_by(waiting.request) == verdict.image;
      if (is_it && verdict.fault == wire::Fault::user)
        answers_.fail(waiting.request, verdict.fault, verdict.message);
      else if (is_it)
        answers_.fail_in_doubt(
            waiting.request,
            health_.doubts.add(verdict.image, waiting.request.named, verdict.message, verdict.counts, now),
            verdict.message, verdict.counts, now);
      return is_it;
    });
  }
}

// Why a request is still in the queue when its time is up.
std::string Core::why_queued(const Request& request) const {
  if (!pod_.known) return "the pilot has not reached the Kubernetes API yet";
  const auto seconds = policy_.bind_deadline.count();
  const Pulls::Pull* pull = pulls_.find(references_.asked_by(request));
  if (pull == nullptr || pull->state == PullState::silent)
    return fmt::format("no payload container became free within {} seconds", seconds);
  return fmt::format("no payload container had the image within {} seconds: {}", seconds,
                     pull->trouble.empty() ? std::string("the node does not say why") : pull->trouble);
}

// Stops asking for images that no request waits for any more.
void Core::ask_for_pulls(Time now) {
  std::set<std::string, std::less<>> names;
  for (const Waiting& waiting : queue_)
    if (const Image asked = references_.asked_by(waiting.request); !asked.is_home())
      names.insert(asked.name());
  pulls_.keep_only(names);
  if (auto want = pulls_.to_tell(now)) actions_.add(*std::move(want));
  for (Note& line : pulls_.take_notes()) actions_.add(std::move(line));
}

void Core::on_wanted(Time now) {
  pulls_.patched();
  settle(now);
}

void Core::on_wanted(const kube::Failure& failure, Time now) {
  pulls_.refused(failure, now);
  settle(now);
}

}  // namespace glidepod::agent
