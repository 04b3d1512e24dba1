#include "pilot-agent/apptainer/prepare.hpp"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/base/child.hpp"
#include "lib/base/file.hpp"
#include "lib/base/text.hpp"
#include "lib/condor/job_ad.hpp"
#include "pilot-agent/apptainer/command_line.hpp"
#include "pilot-agent/apptainer/native.hpp"
#include "pilot-agent/apptainer/report.hpp"
#include "pilot-agent/apptainer/request.hpp"

namespace glidepod::apptainer {

namespace {

constexpr std::size_t k_longest_ad = std::size_t{4} << 20;
constexpr std::int64_t k_many_in_vain = 3;
constexpr std::chrono::seconds k_longest_evaluation{60};       // it takes 10 to 40 ms
constexpr std::size_t k_most_memory = std::size_t{256} << 20;  // of addresses; it takes less than 100 MiB
constexpr const char* k_condor_q = "/usr/bin/condor_q";
// As in config.d/50-containers.config, from the job's side.
constexpr const char* k_image_expression =
    "isString(MY.SingularityImage) ? MY.SingularityImage : "
    "(MY.ContainerImage =!= undefined ? MY.ContainerImage : TARGET.GlidepodDefaultImage)";

Result<std::string> read_ad() {
  const Fd input(::dup(STDIN_FILENO));
  return read_all(input, "the job ad", k_longest_ad);
}

// The text of a file in memory, at its beginning.
Result<Fd> memory_file(const std::string& text) {
  Fd fd(::memfd_create("glidepod", MFD_CLOEXEC));
  if (!fd) return Error::system("make a file in memory");
  TRY(write_all(fd, text));
  if (::lseek(fd.get(), 0, SEEK_SET) != 0) return Error::system("rewind");
  return fd;
}

// A literal that can be read in one way only.
std::optional<std::string> plain_string(const condor::JobAttributes& job, std::string_view name) {
  const auto found = job.find(name);
  if (found == job.end() || found->second.find('\\') != std::string_view::npos) return std::nullopt;
  return condor::string_literal(found->second);
}

std::int64_t number(const condor::JobAttributes& job, std::string_view name) {
  const auto found = job.find(name);
  const auto value = parse_integer(found == job.end() ? "" : found->second);
  return value ? value.value() : 0;
}

int say(const std::string& text) {
  const Fd out(::dup(STDOUT_FILENO));
  // Whoever does not read it kills this process.
  (void)write_all(out, text);
  return 0;
}

std::string variable(const char* name) {
  const char* value = ::secure_getenv(name);
  return value != nullptr ? value : "";
}

Result<BindRequest> bind_request(const std::string& image, const std::string& ad) {
  const CommandLine line = test_line(image, variable("_CONDOR_SCRATCH_DIR"));
  BindRequest request = TRY(make_request(line, Surroundings::of_this_process()));
  request.bind.job_ad = condor::identity_lines(condor::parse_attributes(ad));
  if (const auto machine = read_file(variable("_CONDOR_MACHINE_AD"), k_longest_ad))
    request.bind.machine_ad = condor::slot_lines(machine.value());
  return request;
}

}  // namespace

std::string hook_answer(int status, std::string_view message) {
  return fmt::format("HookStatusCode = {}\nHookStatusMessage = {}\n", status,
                     condor::quote(one_line(message)));
}

std::string matched_ad(const std::string& job, const std::string& machine) {
  std::string beneath, target;
  for (const auto& [name, expression] : condor::parse_attributes(machine)) {
    beneath += fmt::format("{} = {}\n", name, expression);
    target += fmt::format("{}{} = {}", target.empty() ? "" : "; ", name, expression);
  }
  return fmt::format("{}TARGET = [ {} ]\n{}", beneath, target, job);
}

Result<std::string> evaluate_image(const std::string& ad, const std::string& machine_ad) {
  const auto machine = read_file(machine_ad, k_longest_ad);
  const Fd input = TRY(memory_file(matched_ad(ad, machine ? machine.value() : "")));
  const Fd output = TRY(memory_file(""));
  const Fd null = TRY(open_file("/dev/null", O_RDWR));
  auto condor_q = TRY(
      Child::spawn({.argv = {k_condor_q, "-allusers", "-jobads", "/dev/stdin", "-af:V", k_image_expression},
                    .environment = {"PATH=/usr/bin:/bin"},
                    .stdin_fd = input.get(),
                    .stdout_fd = output.get(),
                    .stderr_fd = null.get(),
                    .parent_death_signal = SIGKILL,
                    .limits = {{RLIMIT_AS, k_most_memory},
                               {RLIMIT_CPU, k_longest_evaluation.count() / 2},
                               {RLIMIT_FSIZE, k_longest_ad},
                               {RLIMIT_CORE, 0}}}));
  const auto ended = TRY(condor_q.wait(k_longest_evaluation));
  if (!ended)
    return error("{} took longer than {} seconds", k_condor_q, k_longest_evaluation.count()).with(Passing{});
  const auto failed = error("{}: {}", k_condor_q, ended->status.to_string());
  // By another signal than that of who is short of memory: by a limit, which it meets wherever it runs.
  if (ended->status == ExitStatus::signaled(SIGKILL)) return failed.with(Passing{});
  if (!ended->status.success()) return failed;
  if (::lseek(output.get(), 0, SEEK_SET) != 0) return Error::system("rewind");
  const auto said = TRY(read_all(output, k_condor_q, k_longest_ad));
  const auto image = condor::string_literal(trim(said));
  if (!image) return error("its value is {}", one_line(trim(said)));
  return *image;
}

Result<std::string> job_image(const std::string& ad, const EvaluateImage& evaluate) {
  const auto job = condor::parse_attributes(ad);
  if (auto image = plain_string(job, "SingularityImage")) return *std::move(image);
  if (!job.contains("SingularityImage")) {
    if (auto image = plain_string(job, "ContainerImage")) return *std::move(image);
    if (!job.contains("ContainerImage"))
      return evaluate(ad).in("the job names no image (container_image = docker://NAME does)");
  }
  return evaluate(ad).in("the job's image is not a string");
}

std::string no_image_answer(const Error& why) {
  const bool passing = why.fact<Passing>() != nullptr || why.code() != 0;
  return hook_answer(passing ? k_run_elsewhere : k_hold, why.message());
}

CommandLine test_line(const std::string& image, const std::string& sandbox) {
  CommandLine line;
  line.verb = wire::Verb::test;
  line.image = image;
  line.work_directory = line.cwd = line.home = sandbox;
  if (!sandbox.empty()) line.binds = {sandbox};
  line.contain = line.clean_environment = true;
  return line;
}

std::string bind_answer(const std::string& ad, const std::string& image, const Result<Outcome>& outcome) {
  // From here on the starter has it as it was bound.
  if (outcome && std::holds_alternative<ExitStatus>(outcome.value()))
    return "SingularityImage = " + condor::quote(image) + "\n";
  const auto* failed = outcome ? std::get_if<wire::Failed>(&outcome.value()) : nullptr;
  const auto why = failed != nullptr ? failure_line(wire::Verb::test, image, failed->message)
                                     : "cannot reach the pilot's agent: " + outcome.error().message();
  if (failed != nullptr && failed->fault == wire::Fault::user) return hook_answer(k_hold, why);
  // A job that pilot after pilot cannot start says so in its log: each start counts in NumShadowStarts, this
  // one included, and only one that came to run in NumJobStarts.
  const auto job = condor::parse_attributes(ad);
  const auto in_vain = number(job, "NumShadowStarts") - number(job, "NumJobStarts");
  return hook_answer(
      k_run_elsewhere,
      in_vain < k_many_in_vain
          ? why
          : fmt::format("{} starts of this job have failed, the last one with: {}", in_vain, why));
}

int check_job(const HandoverOptions& options) {
  const auto ad = read_ad();
  if (!ad) return say(no_image_answer(ad.error()));
  if (const auto good = check_native(condor::parse_attributes(ad.value())); !good)
    return say(hook_answer(k_hold, good.error().message()));
  // Whatever is wrong from here on, the job is told when it binds.
  const auto image = job_image(ad.value(), [](const std::string&) -> Result<std::string> {
    return error("what is no string is evaluated then");
  });
  auto request = image ? bind_request(image.value(), ad.value()) : image.error();
  if (!request) return 0;
  request->bind.verb = wire::Verb::announce;
  (void)hand_over(request.value(), options);
  return 0;
}

int prepare_job(const HandoverOptions& options) {
  const auto ad = read_ad();
  if (!ad) return say(no_image_answer(ad.error()));
  if (const auto good = check_native(condor::parse_attributes(ad.value())); !good)
    return say(hook_answer(k_hold, good.error().message()));
  const auto image = job_image(ad.value(), [](const std::string& text) {
    return evaluate_image(text, variable("_CONDOR_MACHINE_AD"));
  });
  if (!image) return say(no_image_answer(image.error()));
  const auto request = bind_request(image.value(), ad.value());
  if (!request)
    return say(hook_answer(k_hold, failure_line(wire::Verb::test, image.value(), request.error().message())));
  return say(bind_answer(ad.value(), image.value(), hand_over(request.value(), options)));
}

}  // namespace glidepod::apptainer
