#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/wire/messages.hpp"

namespace glidepod::apptainer {

// A command line of the real apptainer, as far as it has a meaning here. Options with no meaning in a payload
// container (its root file system is writable, its job never has a capability) are accepted and forgotten;
// options that promise something not kept here are errors. What stands after the image is the job's.
struct CommandLine {
  enum class Action : std::uint8_t { run_verb, show_version, show_help };
  Action action = Action::run_verb;
  wire::Verb verb = wire::Verb::exec;
  std::string image;
  std::vector<std::string> argv;
  std::vector<std::string> binds;        // src[:dst[:options]], comma lists taken apart
  std::string cwd;                       // --pwd; empty: not given
  std::string home;                      // --home, src[:dst]; empty: not given
  std::string work_directory;            // -W
  std::vector<std::string> environment;  // --env: KEY=VALUE
  std::vector<std::string> environment_files;
  bool clean_environment = false;
  bool contain = false;
  bool own_umask = true;  // false: 022

  friend bool operator==(const CommandLine&, const CommandLine&) = default;
};

// Reads the arguments (without the program's name) as apptainer's option parser, pflag, does: clusters of
// short options, "-Wdir", "--option=value" and "--option value", the end of the options at the first argument
// that is none. An Error's text is for the user and names the option.
Result<CommandLine> parse_command_line(const std::vector<std::string>& arguments);

// Whether the arguments ask for `test`, even if they are otherwise wrong: its errors go to standard output.
bool asks_for_test(const std::vector<std::string>& arguments);

// Every option that is understood, "-B/--bind" and so on, blanks between them.
std::string understood_options();

}  // namespace glidepod::apptainer
