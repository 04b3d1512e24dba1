#pragma once

#include <string>
#include <vector>

#include "lib/base/child.hpp"
#include "lib/base/result.hpp"
#include "lib/wire/messages.hpp"

namespace glidepod::apptainer {

// What sshd starts as the slot user's shell, by the line of authorized_keys that ssh.cpp writes: the job's
// sandbox is the last word of the forced command, the user's own command is in SSH_ORIGINAL_COMMAND.
struct ShellCall {
  std::string sandbox;
  std::string command;  // empty: a shell
};
Result<ShellCall> parse_shell_call(const std::vector<std::string>& arguments,
                                   const std::vector<std::string>& environment);

// What of sshd's environment goes with the session: the terminal's kind, the language.
std::vector<std::string> session_environment(const std::vector<std::string>& environment);

// As a shell has it: 128+n for a signal. sshd would turn one into ssh's own 255.
int exit_code(const ExitStatus& status);

// Runs the session: the program's exit code. 255, as ssh has it, for whatever is not the command's own end.
int enter_job(const std::vector<std::string>& arguments, const std::string& agent_socket);

}  // namespace glidepod::apptainer
