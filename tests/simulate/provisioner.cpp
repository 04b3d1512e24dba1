#include "tests/simulate/provisioner.hpp"

#include <algorithm>

#include "tests/simulate/world.hpp"

namespace glidepod::simulate {

using kube::PulledImage;
using kube::WantedImage;
using std::chrono::seconds;

void Provisioner::told(const kube::Pod& pod) {
  const Weather& weather = world_.weather;
  if (!weather.provisioner) return;
  const auto& wanted = pod.wanted_images;
  for (auto& [ask, pull] : pulls_) pull.gone = std::ranges::find(wanted, pull.wanted) == wanted.end();
  for (const WantedImage& one : wanted)
    if (!pulls_.contains(one.ask)) begin(one);
}

void Provisioner::begin(const WantedImage& wanted) {
  pulls_[wanted.ask] = {wanted};
  if (world_.fault(world_.weather.pullers_astray)) return astray(wanted);
  world_.say("provisioner: makes a puller for {}, {}", wanted.image, wanted.ask);
  say(wanted, State::pulling);
  world_.clock.after(world_.takes(200, 3000), [this, ask = wanted.ask] { attempt(ask); });
}

// The kubelet's, in the puller's pod.
void Provisioner::attempt(const std::string& ask) {
  Pull& pull = pulls_.at(ask);
  if (pull.gone) return;
  const std::string image = world_.api.admitted(pull.wanted.image);
  const bool tag = image.find('@') == std::string::npos;
  if (world_.images.on_node(image) && !(tag && world_.weather.always_pull))
    return say(pull.wanted, State::ready);
  world_.clock.after(world_.takes(50, 5000), [this, ask, image] {
    Pull& then = pulls_.at(ask);
    if (then.gone) return;
    const auto content = world_.images.in_registry(image);
    const bool none = !content || world_.images.content(*content).kind == Content::Kind::gone;
    const bool fails = world_.fault(world_.weather.pull_fails);
    if (!none && !fails) {
      world_.images.pull(image, *content);
      return say(then.wanted, State::ready);
    }
    then.pause = then.pause.count() == 0 ? Milliseconds(seconds(10))
                                         : std::min<Milliseconds>(2 * then.pause, seconds(300));
    say(then.wanted, State::failed, "ErrImagePull", fails ? "i/o timeout" : "manifest unknown");
    world_.clock.after(then.pause, [this, ask] { attempt(ask); });
  });
}

// Whatever else there may be for an answer.
void Provisioner::astray(const WantedImage& wanted) {
  Random& random = world_.random;
  switch (random.between(0, 7)) {
    case 0:
      world_.say("provisioner: does not answer {}", wanted.ask);
      return;
    case 1:  // it is at it for ever
      return say(wanted, State::pulling);
    case 2:  // evicted, after a while
      say(wanted, State::pulling);
      world_.clock.after(random.delay(100, 60'000),
                         [this, wanted] { say(wanted, State::lost, "Evicted", "low on disk"); });
      return;
    case 3:  // not there, though it says so
      return say(wanted, State::ready);
    case 4:  // of another image, and of another question
      say({"docker.io/library/other:1", wanted.ask}, State::failed, "ErrImagePull", "manifest unknown");
      return say({wanted.image, "g0-p0"}, State::failed, "ErrImagePull", "manifest unknown");
    case 5:  // late, when the job may be gone
      world_.clock.after(random.delay(1000, 700'000), [this, wanted] { attempt(wanted.ask); });
      return;
    case 6:  // a registry that comes and goes
      say(wanted, State::failed, "ErrImagePull", "i/o timeout");
      world_.clock.after(random.delay(1000, 200'000), [this, wanted] {
        say(wanted, world_.random.chance(500) ? State::ready : State::lost, "Evicted");
      });
      return;
    case 7:  // twice, and each time something else
      say(wanted, State::ready);
      world_.clock.after(random.delay(10, 5000),
                         [this, wanted] { say(wanted, State::failed, "ErrImagePull", "i/o timeout"); });
      return;
  }
}

void Provisioner::say(const WantedImage& wanted, State state, std::string reason, std::string message) {
  PulledImage answer{wanted, state, std::move(reason), std::move(message)};
  last_said_ = std::max(last_said_, world_.now() + world_.takes(5, 300));
  world_.clock.at(last_said_, [this, answer = std::move(answer)] {
    std::erase_if(answers_, [&](const PulledImage& one) { return one.wanted == answer.wanted; });
    answers_.push_back(answer);
    if (answers_.size() > kube::k_most_wanted) answers_.erase(answers_.begin());
    world_.say("provisioner: {} ({}) is {} {}", answer.wanted.image, answer.wanted.ask,
               answer.state == State::pulling  ? "being pulled"
               : answer.state == State::ready  ? "ready"
               : answer.state == State::failed ? "failing"
                                               : "lost",
               answer.message);
    world_.api.set_pulled(kube::pulled_text(answers_));
  });
}

}  // namespace glidepod::simulate
