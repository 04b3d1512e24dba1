#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"

namespace glidepod::apptainer {

// HTCondor's starter has an sshd for a job's owner (condor_ssh_to_job): it calls condor_ssh_to_job_sshd_setup
// in LIBEXEC, which makes keys and a configuration, then SSH_TO_JOB_SSHD with the connection as standard
// input and output. HTCondor's own script puts all of it into the job's sandbox, which the job can write, and
// runs the owner's command in the pilot container. These take its place. Like the job they run as the slot's
// user, so they are closed to it (not dumpable), execute only what is too, and nothing of the job's
// environment or sandbox.

// The name of a user in the text of a passwd file.
std::optional<std::string> user_of(std::string_view passwd, uid_t uid);

// sshd's configuration: ours, then the site's.
std::string sshd_config(const std::string& folder, std::string_view rest);
// The one line of authorized_keys.
std::string authorized_key(const std::string& sandbox, std::string_view public_key);

// condor_ssh_to_job_sshd_setup SANDBOX SHELL_SETUP CONFIG KEYGEN: prints what the starter expects.
int set_up_sshd(const std::vector<std::string>& arguments);

// sshd ARGUMENT..., with -f FOLDER/sshd_config among them: runs sshd until it or the job ends.
int run_sshd(const std::vector<std::string>& arguments, const std::string& agent_socket);

}  // namespace glidepod::apptainer
