#pragma once

#include <string>

namespace CLI {
class App;
}

namespace glidepod::podhost {

// podhost get|create|delete|logs: for people without kubectl.
struct ClientCommand {
  std::string verb;  // empty: none, serve
  std::string name_space = "default", name, file, container;
  bool follow = false;
  int grace = -1;
};
void add_client(CLI::App& app, ClientCommand* command);

// Talks to the daemon's socket and prints its answer. Returns the exit code.
int run_client(const std::string& socket, const ClientCommand& command);

}  // namespace glidepod::podhost
