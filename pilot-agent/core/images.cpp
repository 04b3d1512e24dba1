// `apptainer run`: the agent asks the registry what an image runs by itself, since a process in a container
// cannot see its image's configuration.

#include <algorithm>

#include "lib/base/log.hpp"
#include "pilot-agent/core/core.hpp"
#include "pilot-agent/core/words.hpp"

namespace glidepod::agent {

// Asks the registry once for each request. A request that is not a `run` needs no answer.
Core::Command Core::ask(Waiting& waiting, Time now) {
  const Request& request = waiting.request;
  if (request.verb != wire::Verb::run || request.any_image || request.runscript || !waiting.argv.empty())
    return Command::known;
  if (!waiting.asked.empty()) return Command::asked;
  waiting.asked = references_.exact_name(request.image);
  if (const auto* command = references_.command_of(waiting.asked))
    return take_command(waiting, *command) ? Command::known : Command::failed;
  actions_.note("event=ask_image job={} image={}", word(request.job), word(waiting.asked));
  const Time deadline = std::min(now + policy_.pull_patience, waiting.arrived + policy_.bind_deadline);
  actions_.add(AskImage{request.client, waiting.asked, deadline});
  return Command::asked;
}

// Returns false if the request has failed.
bool Core::take_command(Waiting& waiting, const registry::ImageCommand& command) {
  const Request& request = waiting.request;
  auto argv = registry::command_line(command, request.arguments);
  if (argv.empty() || argv.front().empty()) {
    answers_.fail(request, wire::Fault::user,
                  "the image has neither ENTRYPOINT nor CMD: name the executable to run");
    return false;
  }
  waiting.argv = std::move(argv);
  return true;
}

Waiting* Core::find_waiting(ClientId client) {
  if (Waiting* waiting = containers_.waiting_of(client)) return waiting;
  const auto found = std::ranges::find_if(
      queue_, [client](const Waiting& waiting) { return waiting.request.client == client; });
  return found == queue_.end() ? nullptr : &*found;
}

void Core::drop_waiting(ClientId client, EventKind event) {
  std::erase_if(queue_, [client](const Waiting& waiting) { return waiting.request.client == client; });
  containers_.drop_waiting(client, event);
}

void Core::on_image_known(ClientId client, const registry::ImageCommand& command, Time now) {
  Waiting* waiting = find_waiting(client);
  if (!waiting || waiting->asked.empty() || !waiting->argv.empty()) return;
  references_.learn_command(waiting->asked, command);
  if (!take_command(*waiting, command)) {
    drop_waiting(client, EventKind::unknown);
    return settle(now);
  }
  for (Container& container : containers_) {
    auto* asking = std::get_if<Asking>(&container.state);
    if (asking == nullptr || asking->waiting.request.client != client) continue;
    Asking known = std::move(*asking);
    return ready(container, std::move(known.waiting), known.how, known.before, EventKind::known, now);
  }
}

void Core::on_image_unknown(ClientId client, wire::Fault fault, const std::string& message, Time now) {
  const Waiting* waiting = find_waiting(client);
  if (!waiting || waiting->asked.empty() || !waiting->argv.empty()) return;
  const Request request = waiting->request;
  drop_waiting(client, EventKind::unknown);
  answers_.fail(request, fault, message);
  settle(now);
}

}  // namespace glidepod::agent
