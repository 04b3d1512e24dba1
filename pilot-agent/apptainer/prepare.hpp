#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "lib/base/result.hpp"
#include "pilot-agent/apptainer/command_line.hpp"
#include "pilot-agent/apptainer/handover.hpp"

namespace glidepod::apptainer {

// HTCondor's starter runs these hooks as the slot's user, with the job ad on standard input, and takes what
// they print into the job's ad: check-job before the input files are there (PREPARE_JOB_BEFORE_TRANSFER),
// which also tells the agent what image the job will ask for, and prepare-job after (PREPARE_JOB), which
// binds the job to a payload container before it counts as started. HTCondor 23.9 takes a second at least in
// between.
//
// HTCondor 23.9 runs a job again and again whose `apptainer test` fails. From a hook a status from 1 to 299
// holds the job with the message, and 300 makes it idle again, to run elsewhere. A job's removal kills the
// hook.
constexpr int k_hold = 1;
constexpr int k_run_elsewhere = 300;

// What a hook that fails prints.
std::string hook_answer(int status, std::string_view message);

// Evaluates the job's image where that is more than a string: HTCondor's expression for it, on a job's ad.
using EvaluateImage = std::function<Result<std::string>(const std::string& ad)>;
// By HTCondor's own condor_q, with the slot's ad (the file's name) on the other side.
Result<std::string> evaluate_image(const std::string& ad, const std::string& machine_ad);
// A job's ad in which the slot's answers as in a match: TARGET.X, and X where the job has none. HTCondor's
// tools take one ad at a time.
std::string matched_ad(const std::string& job, const std::string& machine);

// The image that a job's ad names, as START and the starter have it (SINGULARITY_IMAGE_EXPR):
// SingularityImage if that is a string, else ContainerImage, else the slot's GlidepodDefaultImage. An error
// where it is none.
Result<std::string> job_image(const std::string& ad, const EvaluateImage& evaluate);

// The fact of an Error of the two above that it may be the node's: it is slow, or killed what evaluates.
struct Passing {};
// What prepare-job prints of a job without an image: it is held, but for want of something here.
std::string no_image_answer(const Error& why);

// What the starter would have `apptainer test` do with this image: -W, --pwd, -B and --home with the sandbox,
// and -C.
CommandLine test_line(const std::string& image, const std::string& sandbox);

// What prepare-job prints of a job's ad, once the agent has said how the bind went.
std::string bind_answer(const std::string& ad, const std::string& image, const Result<Outcome>& outcome);

// The hooks themselves; they return the exit code.
int check_job(const HandoverOptions& options);
int prepare_job(const HandoverOptions& options);

}  // namespace glidepod::apptainer
