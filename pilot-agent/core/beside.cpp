#include "pilot-agent/core/beside.hpp"

namespace glidepod::agent {

bool Beside::may_switch(const Image& image, Time now) {
  return pulls.may_switch(image, references_.pull_name(image), now);
}

std::vector<Image> Beside::fail_unpulled(Time now) {
  std::vector<Image> images;
  for (const Pulls::Verdict& verdict : pulls.take_verdicts()) {
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
    images.push_back(verdict.image);
  }
  return images;
}

void Beside::ask(Names names, Time now) {
  for (const Waiting& waiting : queue_)
    if (const Image asked = references_.asked_by(waiting.request); !asked.is_home())
      names.insert(asked.name());
  pulls.keep_only(names);
  if (auto want = pulls.to_tell(now)) actions_.add(*std::move(want));
  for (Note& line : pulls.take_notes()) actions_.add(std::move(line));
}

std::string Beside::why_queued(const Request& request) const {
  const auto seconds = policy_.bind_deadline.count();
  const Pulls::Pull* pull = pulls.find(references_.asked_by(request));
  if (pull == nullptr || pull->state == PullState::silent)
    return fmt::format("no payload container became free within {} seconds", seconds);
  return fmt::format("no payload container had the image within {} seconds: {}", seconds,
                     pull->trouble.empty() ? std::string("the node does not say why") : pull->trouble);
}

}  // namespace glidepod::agent
