#include "pilot-agent/core/image_commands.hpp"

#include <algorithm>

#include "lib/kube/image_reference.hpp"
#include "pilot-agent/core/words.hpp"

namespace glidepod::agent {

namespace {
constexpr std::size_t k_most_commands = 32;
}  // namespace

const registry::ImageCommand* ImageCommands::find(std::string_view exact_name) const {
  const auto found = std::ranges::find(known_, kube::digest_of(exact_name),
                                       &std::pair<std::string, registry::ImageCommand>::first);
  return found == known_.end() ? nullptr : &found->second;
}

ImageCommands::Command ImageCommands::ask(Waiting& waiting, Time now) {
  const Request& request = waiting.request;
  if (request.verb != wire::Verb::run || request.any_image || request.runscript || !waiting.argv.empty())
    return Command::known;
  if (!waiting.exact_name.empty()) return Command::asked;
  waiting.exact_name = references_.exact_name(request.asked);
  if (const auto* command = find(waiting.exact_name))
    return give(waiting, *command) ? Command::known : Command::failed;
  actions_.note("event=ask_image job={} image={}", word(request.job), word(waiting.exact_name));
  const Time deadline = std::min(now + policy_.pull_patience, waiting.arrived + policy_.bind_deadline);
  actions_.add(AskImage{request.client, waiting.exact_name, deadline});
  return Command::asked;
}

bool ImageCommands::learn(Waiting& waiting, const registry::ImageCommand& command) {
  std::string digest = kube::digest_of(waiting.exact_name);
  if (!digest.empty() && find(waiting.exact_name) == nullptr) {
    known_.emplace_back(std::move(digest), command);
    if (known_.size() > k_most_commands) known_.pop_front();
  }
  return give(waiting, command);
}

// Returns false if the request has failed.
bool ImageCommands::give(Waiting& waiting, const registry::ImageCommand& command) {
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

}  // namespace glidepod::agent
