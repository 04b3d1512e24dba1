#include "pilot-agent/apptainer/enter.hpp"

#include <doctest/doctest.h>
#include <signal.h>

#include "pilot-agent/apptainer/ssh.hpp"

using namespace glidepod;
using namespace glidepod::apptainer;

TEST_CASE("enter: the sandbox is the forced command's, the command the owner's") {
  const std::vector<std::string> forced{"-c", "/usr/libexec/glidepod/job-shell /glidepod/scratch/dir_7"};
  auto call = parse_shell_call(forced, {"SSH_ORIGINAL_COMMAND=echo 'a b'; exit 3", "SSH_TTY=/dev/pts/1"});
  CHECK(call.value().sandbox == "/glidepod/scratch/dir_7");
  CHECK(call.value().command == "echo 'a b'; exit 3");
  CHECK(parse_shell_call(forced, {}).value().command.empty());
  // By a shell of another account.
  CHECK(parse_shell_call({"/glidepod/scratch/dir_7"}, {}).value().sandbox == "/glidepod/scratch/dir_7");
}

TEST_CASE("enter: without a sandbox there is nothing to enter") {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{},
                                                    {"-c"},
                                                    {"-c", "ls"},
                                                    {"-c", "job-shell "},
                                                    {"-l", "-c", "/a"},
                                                    {"a", "/b"}})
    CHECK_FALSE(parse_shell_call(arguments, {}).ok());
}

TEST_CASE("enter: of sshd's environment only terminal and language go along") {
  CHECK(session_environment({"TERM=xterm", "LANG=C.UTF-8", "LC_ALL=C", "PATH=/bin", "HOME=/", "LD_PRELOAD=x",
                             "TERMCAP=x", "SSH_CONNECTION=1"}) ==
        std::vector<std::string>{"TERM=xterm", "LANG=C.UTF-8", "LC_ALL=C"});
}

TEST_CASE("enter: a signal is told as a shell tells it") {
  CHECK(exit_code(ExitStatus::exited(0)) == 0);
  CHECK(exit_code(ExitStatus::exited(255)) == 255);
  CHECK(exit_code(ExitStatus::signaled(SIGSEGV)) == 139);
}

TEST_CASE("ssh: a user's name is found by number, whatever else the file holds") {
  const std::string passwd =
      "root:x:0:0:root:/root:/bin/sh\n\n+:::\nslot1:x:20001:20001::/:/bin/sh\nodd:x:2000:1";
  CHECK(user_of(passwd, 20001) == "slot1");
  CHECK(user_of(passwd, 2000) == "odd");
  CHECK(user_of(passwd, 200) == std::nullopt);
  CHECK(user_of("", 0) == std::nullopt);
}

TEST_CASE("ssh: the one key lets into the job's sandbox only, the site's words come after ours") {
  CHECK(authorized_key("/glidepod/scratch/dir_7", "ssh-ed25519 AAAA\n") ==
        "command=\"/usr/libexec/glidepod/job-shell /glidepod/scratch/dir_7\" ssh-ed25519 AAAA\n");
  // The first value that sshd reads of a keyword is the one that counts.
  const std::string config = sshd_config("/tmp/x", "HostKey /other\n");
  CHECK(config == "HostKey /tmp/x/key\nAuthorizedKeysFile /tmp/x/authorized_keys\nHostKey /other\n");
}
