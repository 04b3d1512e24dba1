// Requests whose image is pulled beside the pod (pulls.hpp). They wait in the queue and hold no container.

#include "lib/kube/image_reference.hpp"
#include "pilot-agent/core/core.hpp"

namespace glidepod::agent {

// Whether a container may switch to the image now. If its digest is known, it is pulled by digest and without
// a tag, which would mean nothing.
bool Core::may_switch(const std::string& image, Time now) {
  if (image.empty()) return true;  // the pilot's own image
  std::string name = references_.exact_name(image);
  if (const auto reference = kube::ImageReference::parse(name); reference && !reference->digest.empty())
    name = reference->local_name();
  return pulls_.may_switch(image, name, now);
}

// Fails the requests for images that cannot be pulled. No container was touched for them.
void Core::fail_unpulled(Time now) {
  for (const Pulls::Verdict& verdict : pulls_.take_verdicts()) {
    queue_.erase_if([&](const Waiting& waiting) {
      const bool is_it = !waiting.request.any_image && goal_of(waiting.request) == verdict.image;
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
  const auto pull = pulls_.all().find(request.any_image ? std::string() : goal_of(request));
  if (pull == pulls_.all().end() || pull->second.state == PullState::silent)
    return fmt::format("no payload container became free within {} seconds", seconds);
  const std::string& trouble = pull->second.trouble;
  return fmt::format("no payload container had the image within {} seconds: {}", seconds,
                     trouble.empty() ? std::string("the node does not say why") : trouble);
}

// Stops asking for images that no request waits for any more.
void Core::ask_for_pulls(Time now) {
  std::set<std::string, std::less<>> images;
  for (const Waiting& waiting : queue_)
    if (!waiting.request.any_image) images.insert(goal_of(waiting.request));
  pulls_.keep_only(images);
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
