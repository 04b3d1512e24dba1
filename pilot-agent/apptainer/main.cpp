#include <sys/prctl.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "lib/base/file.hpp"
#include "pilot-agent/apptainer/command_line.hpp"
#include "pilot-agent/apptainer/enter.hpp"
#include "pilot-agent/apptainer/handover.hpp"
#include "pilot-agent/apptainer/prepare.hpp"
#include "pilot-agent/apptainer/report.hpp"
#include "pilot-agent/apptainer/request.hpp"
#include "pilot-agent/apptainer/ssh.hpp"

using namespace glidepod;
using namespace glidepod::apptainer;

namespace {

void print(int fd, std::string_view text) {
  const Fd copy(::dup(fd));
  // Nobody is left to tell if even this fails.
  (void)write_all(copy, text);
}

int show_version() {
  // HTCondor looks for the word "apptainer" in the first line, to know how to hand over the environment.
  print(STDOUT_FILENO, "apptainer version 1.4.0 (glidepod " GLIDEPOD_VERSION ")\n");
  return 0;
}

int show_help() {
  print(STDOUT_FILENO,
        "usage: apptainer [OPTION...] exec|run|test [OPTION...] IMAGE [COMMAND [ARGUMENT...]]\n"
        "       apptainer version\n\n"
        "Runs a command in a payload container of this pod, as HTCondor's starter would have\n"
        "Apptainer do it. IMAGE is an image of a registry: docker://NAME, or\n"
        "a path that the agent has a rule for. `run` starts the image's own ENTRYPOINT, with\n"
        "CMD or, in its place, what stands after IMAGE.\n"
        "Options: " +
            understood_options() +
            "\n\n"
            "Exit: the command's own exit code or signal; 255 if the image or the command line is\n"
            "at fault, 125 if the pod is.\n");
  return 0;
}

int fail(wire::Verb verb, std::string_view image, std::string_view message, int code) {
  print(verb == wire::Verb::test ? STDOUT_FILENO : STDERR_FILENO, failure_line(verb, image, message));
  return code;
}

// The same file under other names: HTCondor and sshd start these as the slot's user too, and what is closed
// to the job once is so under every name.
enum class Role : std::uint8_t { apptainer, check_job, prepare_job, sshd_setup, sshd, job_shell, nothing };
Role role_of(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (name == "check-job") return Role::check_job;
  if (name == "prepare-job") return Role::prepare_job;
  if (name == "condor_ssh_to_job_sshd_setup") return Role::sshd_setup;
  if (name == "sshd") return Role::sshd;
  if (name == "job-shell") return Role::job_shell;
  // What HTCondor would let anybody who can write to the job's sandbox start, the job included.
  if (name == "condor_nsenter" || name == "condor_ssh_to_job_shell_setup") return Role::nothing;
  return Role::apptainer;
}

// This is the copy on the shared volume: a pilot job in a payload container has called it
// (docs/pilot-jobs.md).
bool in_payload_container() {
  char path[64] = {};
  return ::readlink("/proc/self/exe", path, sizeof path - 1) > 0 &&
         std::string_view(path) == "/glidepod/bin/apptainer";
}

HandoverOptions handover_options() {
  return usual_options(in_payload_container() ? "/glidepod/run/pilots.sock" : "/run/glidepod/exec.sock");
}

int run(const std::vector<std::string>& arguments) {
  const auto line = parse_command_line(arguments);
  if (!line) {
    const auto verb = asks_for_test(arguments) ? wire::Verb::test : wire::Verb::exec;
    return fail(verb, "", line.error().message(), k_user_fault);
  }
  switch (line->action) {
    case CommandLine::Action::show_version:
      return show_version();
    case CommandLine::Action::show_help:
      return show_help();
    case CommandLine::Action::run_verb:
      break;
  }
  const auto request = make_request(line.value(), Surroundings::of_this_process());
  if (!request) return fail(line->verb, line->image, request.error().message(), k_user_fault);

  // HTCondor's probe of a container runtime needs none of the few containers: what is probed works here too.
  if (request->program && in_payload_container()) {
    std::vector<char*> argv;
    for (const std::string& word : request->bind.argv) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    ::fexecve(request->program.get(), argv.data(), environ);
    return fail(line->verb, line->image, Error::system("start").message(), k_user_fault);
  }
  auto options = handover_options();
  options.stands_for_job = line->verb != wire::Verb::test;
  const auto outcome = hand_over(request.value(), options);
  if (!outcome)
    return fail(line->verb, line->image, "cannot reach the pilot's agent: " + outcome.error().message(),
                k_infrastructure_fault);
  if (const auto* failed = std::get_if<wire::Failed>(&outcome.value()))
    return fail(line->verb, line->image, failed->message,
                failed->fault == wire::Fault::user ? k_user_fault : k_infrastructure_fault);
  end_as(std::get<ExitStatus>(outcome.value()));
}

}  // namespace

int main(int argc, char** argv) {
  // The job runs under the same user in a container of the same PID namespace. Through a dumpable process
  // here it could read this environment and walk into the pilot's file system.
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  if (const auto opened = open_missing_streams(); !opened) return k_infrastructure_fault;
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  switch (role_of(argc > 0 ? argv[0] : "")) {
    case Role::apptainer:
      return run(arguments);
    case Role::check_job:
      return check_job(handover_options());
    case Role::prepare_job:
      return prepare_job(handover_options());
    case Role::sshd_setup:
      return set_up_sshd(arguments);
    case Role::sshd:
      return run_sshd(arguments, handover_options().socket);
    case Role::job_shell:
      return enter_job(arguments, handover_options().socket);
    case Role::nothing:
      break;
  }
  print(STDERR_FILENO, "condor_ssh_to_job enters a job by sshd, not by this program\n");
  return k_infrastructure_fault;
}
