#include "pilot-agent/core/snapshot.hpp"

#include "lib/base/log.hpp"
#include "pilot-agent/core/answers.hpp"
#include "pilot-agent/core/containers.hpp"
#include "pilot-agent/core/health.hpp"
#include "pilot-agent/core/pulls.hpp"
#include "pilot-agent/core/queue.hpp"
#include "pilot-agent/core/references.hpp"
#include "pilot-agent/core/words.hpp"

namespace glidepod::agent {

Snapshot snapshot_of(const Containers& containers, const Queue& queue, const Pulls& pulls,
                     const References& references, const Health& health, const Answers& answers) {
  Snapshot result;
  for (const Container& container : containers) {
    auto& one = result.containers.emplace_back();
    one.name = container.name;
    one.state = container.kind();
    one.instance = container.instance;
    one.image = container.proven.name_or("");
    one.digest = kube::digest_of(container.shown);
    one.settled = container.settled();
    const auto is_for = [&one](const Request& request) {
      one.job = request.job;
      one.owner = request.owner;
      one.slot = request.slot;
    };
    const auto is_with = [&](const auto& holder) {
      is_for(holder.request);
      one.how = holder.how;
      one.bound_in = holder.bound_in;
      // The job asked for the pilot's own image.
      if (one.image.empty() && !holder.request.any_image) one.image = holder.request.asked.name_or("");
    };
    if (const Job* job = container.job()) is_with(*job);
    if (one.state == State::clearing) {  // for people, a lost job still ends here
      one.state = State::draining;
      one.bound_in = std::chrono::microseconds(0);
    }
    if (const auto* reserved = std::get_if<Reserved>(&container.state)) is_with(*reserved);
    if (const auto* asking = std::get_if<Asking>(&container.state)) is_for(asking->waiting.request);
    const auto* step = std::get_if<Switching>(&container.state);
    if (step == nullptr) continue;
    if (step->waiting) is_for(step->waiting->request);
    one.wanted = step->asked.name_or("");
    one.step = fmt::format("{} by {}", name_of(step->leg), name_of(step->proof));
    one.trouble = step->trouble.message;
  }
  for (const Waiting& waiting : queue) {
    const Request& request = waiting.request;
    auto& queued = result.waiting.emplace_back();
    queued = {request.job, request.owner, request.slot, std::string(request.asked.name_or("")), false, {}};
    const Pulls::Pull* pull = pulls.find(references.asked_by(request));
    if (pull == nullptr || pull->state == PullState::silent) continue;
    queued.pulling = true;
    queued.trouble = pull->trouble;
  }
  for (const auto& [image, pull] : pulls.all())
    result.pulls.push_back({image, std::string(name_of(pull.state)), pull.trouble});
  for (const Doubts::Doubt& doubt : health.doubts.all())
    for (const std::string& named : doubt.names) result.doubts.push_back({named, doubt.until});
  result.binds = answers.binds();
  result.failures = health.failures();
  result.given_up = health.given_up();
  result.shortage = answers.shortage();
  return result;
}

std::string Snapshot::to_string() const {
  std::string text;
  for (const One& one : containers)
    text += fmt::format(
        "container={} state={} id={} image={} digest={} settled={} job={} owner={} wanted={} step={} "
        "trouble={}\n",
        one.name, name_of(one.state), word(one.instance.substr(0, 12)), word(one.image), word(one.digest),
        one.settled ? "yes" : "no", word(one.job), word(one.owner), word(one.wanted), word(one.step),
        word(one.trouble));
  for (const Beside& pull : pulls)
    text += fmt::format("pull={} state={} trouble={}\n", word(pull.image), pull.state, word(pull.trouble));
  return text + fmt::format("waiting={} failures={} given_up={}\n", waiting.size(), failures,
                            given_up ? "yes" : "no");
}

}  // namespace glidepod::agent
