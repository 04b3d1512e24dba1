#include "pilot-agent/apptainer/prepare.hpp"

#include <doctest/doctest.h>

#include <regex>
#include <set>

#include "lib/base/file.hpp"
#include "pilot-agent/apptainer/native.hpp"

using namespace glidepod;
using namespace glidepod::apptainer;

namespace {

// Where HTCondor would be asked.
const EvaluateImage k_asked = [](const std::string&) -> Result<std::string> { return std::string("asked"); };

std::string image_of(const std::string& ad) {
  const auto image = job_image(ad, k_asked);
  return image ? image.value() : image.error().message();
}

std::string refusal_of(const std::string& ad) {
  const auto checked = check_native(condor::parse_attributes(ad));
  return checked ? "" : checked.error().message();
}

}  // namespace

TEST_CASE("prepare: a job's image, as HTCondor reads its ad") {
  static constexpr const char* table[][2] = {
      {"SingularityImage = \"docker://a\"", "docker://a"},
      {"singularityimage = \"docker://a\"", "docker://a"},
      {"SINGULARITYIMAGE=\"docker://a\"", "docker://a"},
      {"SingularityImage   =   \"docker://a\"  ", "docker://a"},
      {"ContainerImage = \"docker://c\"", "docker://c"},
      {"containerImage = \"docker://c\"", "docker://c"},
      {"ContainerImage = \"docker://c\"\nSingularityImage = \"docker://a\"", "docker://a"},
      {"SingularityImage = \"docker://a\"\nContainerImage = \"docker://c\"", "docker://a"},
      {"ContainerImage = \"oras://c\"\nWantContainer = true\nWantSandboxImage = true", "oras://c"},
      {"ContainerImage = \"image.sif\"\nWantSIF = true", "image.sif"},
      {"DockerImage = \"docker://d\"\nContainerImage = \"docker://c\"", "docker://c"},
      {"SingularityImage = \"docker://a\"\nsingularityImage = \"docker://b\"", "asked"},
      {"SingularityImage = \"\"", ""},
      // Whatever is more than a string is HTCondor's to evaluate.
      {"SingularityImage = ifThenElse(true,\"docker://a\",\"docker://b\")", "asked"},
      {"SingularityImage = \"docker://\" + \"a\"", "asked"},
      {"SingularityImage = strcat(\"docker://\",\"a\")", "asked"},
      {"SingularityImage = Other\nOther = \"docker://a\"", "asked"},
      {"SingularityImage = undefined\nContainerImage = \"docker://c\"", "asked"},
      {"SingularityImage = 5\nContainerImage = \"docker://c\"", "asked"},
      {"SingularityImage = \"docker:\\/\\/a\"", "asked"},
      {"ContainerImage = toLower(\"docker://C\")", "asked"},
      // So is whether the pilot has an image for jobs that name none.
      {"Cmd = \"a\"", "asked"},
      {"MySingularityImage = \"docker://a\"", "asked"},
      {"Arguments = \"SingularityImage = x\"", "asked"},
  };
  for (const auto& [text, image] : table) {
    const std::string ad = text;  // clang 14 captures no binding
    CAPTURE(ad);
    CHECK(image_of(ad + "\n") == image);
  }
}

TEST_CASE("prepare: what HTCondor cannot evaluate is told") {
  const auto undefined = [](const std::string&) -> Result<std::string> {
    return error("its value is undefined");
  };
  CHECK(job_image("SingularityImage = error\n", undefined).error().message() ==
        "the job's image is not a string: its value is undefined");
  CHECK(job_image("Cmd = \"a\"\n", undefined).error().message() ==
        "the job names no image (container_image = docker://NAME does): its value is undefined");
}

TEST_CASE("prepare: a job is held for its image's name, not for what the pilot lacks") {
  CHECK(no_image_answer(error("its value is undefined")) == hook_answer(k_hold, "its value is undefined"));
  CHECK(no_image_answer(error("condor_q: signal 9").with(Passing{})) ==
        hook_answer(k_run_elsewhere, "condor_q: signal 9"));
  const Error none("start condor_q", EAGAIN);
  CHECK(no_image_answer(none) == hook_answer(k_run_elsewhere, none.message()));
}

TEST_CASE("prepare: the slot's ad is beneath the job's and its TARGET") {
  CHECK(matched_ad("A = TARGET.B\nB = 1\n", "B = 2\nName = \"s\"\n") ==
        "B = 2\nName = \"s\"\nTARGET = [ B = 2; Name = \"s\" ]\nA = TARGET.B\nB = 1\n");
  CHECK(matched_ad("A = 1\n", "") == "TARGET = [  ]\nA = 1\n");
}

TEST_CASE(
    "prepare: what is tested is what the starter's command line says, and an image is never an option") {
  const std::string sandbox = "/scratch/dir_1", image = "docker://a:1";
  const auto starters = parse_command_line(
      {"test", "-W", sandbox, "--pwd", sandbox, "-B", sandbox, "--home", sandbox, "-C", image});
  CHECK(test_line(image, sandbox) == starters.value());
  CHECK(test_line(image, "") ==
        parse_command_line({"test", "-W", "", "--pwd", "", "-B", "", "--home", "", "-C", image}).value());
  CHECK(test_line("--help", sandbox).image == "--help");
  CHECK(test_line("--help", sandbox).action == CommandLine::Action::run_verb);
}

TEST_CASE("prepare: an answer is a ClassAd of two lines, whatever is in the message") {
  CHECK(hook_answer(1, "a \"b\" \\c\nd\r") ==
        "HookStatusCode = 1\nHookStatusMessage = \"a \\\"b\\\" \\\\c\"\n");
}

TEST_CASE(
    "prepare: the third start that came to nothing says so, an earlier one and the user's fault do not") {
  const std::string third = "NumJobStarts = 1\nNumShadowStarts = 4\n", image = "docker://a:1";
  const Outcome passing = wire::Failed{wire::Fault::infrastructure, "docker://a:1: no route"};
  const Outcome users = wire::Failed{wire::Fault::user, "docker://a:1: manifest unknown"};
  CHECK(bind_answer(third, image, Outcome(ExitStatus::exited(0))) == "SingularityImage = \"docker://a:1\"\n");
  CHECK(bind_answer("NumShadowStarts = 2\n", image, passing) ==
        "HookStatusCode = 300\nHookStatusMessage = \"docker://a:1: no route\"\n");
  CHECK(bind_answer(third, image, passing) ==
        "HookStatusCode = 300\nHookStatusMessage = \"3 starts of this job have failed, the last one with: "
        "docker://a:1: no route\"\n");
  CHECK(bind_answer(third, image, users) ==
        "HookStatusCode = 1\nHookStatusMessage = \"docker://a:1: manifest unknown\"\n");
  CHECK(bind_answer("", image, error("connection refused")) ==
        "HookStatusCode = 300\nHookStatusMessage = \"cannot reach the pilot's agent: connection refused\"\n");
}

TEST_CASE("native: a job that would have a program run beside the starter is refused, however it says so") {
  static constexpr const char* refused[] = {
      "PreCmd = \"evil\"",
      "precmd = \"evil\"",
      "PreCmd = ifThenElse(time() > 5,\"evil\",undefined)",
      "PreCmd = \"\"",
      "PostCmd = \"evil\"",
      "ToolDaemonCmd = \"evil\"",
      "TransferPlugins = \"evil=evil\"",
      "WantDocker = true",
      "WantDocker = 1",
      "WantDocker = random() < 0.5",
      "UseParrot = True",
      "SuspendJobAtExec = true",
      "EncryptExecuteDirectory = true",
      "StarterWaitForDebug = 1",
      "JobStarterDebug = \"D_FULLDEBUG\"",
      "JobStarterDebug = true",
  };
  for (const std::string line : refused) {
    CAPTURE(line);
    const auto name = line.substr(0, line.find(' '));
    const auto reason = refusal_of("JobUniverse = 5\n" + line + "\n");
    CHECK(reason.find("is refused here") != std::string::npos);
    CHECK_FALSE(condor::LessNoCase()(reason.substr(0, name.size()), name));
  }
  for (const std::string line :
       {"Cmd = \"a\"", "PreCmd = undefined", "WantDocker = false", "WantDocker = FALSE",
        "WantDocker = undefined", "StarterWaitForDebug = 0", "WantDockerImage = true",
        "HookKeyword = \"OTHER\"", "PreArguments = \"x\""}) {
    CAPTURE(line);
    CHECK(refusal_of("JobUniverse = 5\n" + line + "\n").empty());
  }
  // A string with line ends, made to look like more attributes.
  CHECK_FALSE(refusal_of("JobUniverse = 5\nPreCmd = \"x\"\nZ = \"\nPreCmd = undefined\n\"\n").empty());
  for (const std::string line : {"", "JobUniverse = 7", "JobUniverse = 10\nZ = \"\nJobUniverse = 5\n\"",
                                 "JobUniverse = 11", "JobUniverse = 2 + 3"}) {
    CAPTURE(line);
    CHECK(refusal_of(line + "\n") == "only jobs of the universes vanilla and container run here");
  }
}

// One list says what matches, the other what is held: a line in one of them only is a hole.
TEST_CASE("native: START and check-job have the same list") {
  const auto text = read_file(GLIDEPOD_SOURCE "/images/pilot/config.d/57-native.config").value();
  const std::regex target("TARGET[.](\\w+) =\\?= (\\w+)");
  std::set<std::string> in_start, in_check{"JobUniverse=5"};
  for (std::sregex_iterator found(text.begin(), text.end(), target), end; found != end; ++found)
    in_start.insert(found->str(1) + "=" + found->str(2));
  for (const auto& attribute : native_attributes()) {
    in_check.insert(std::string(attribute.name) + "=undefined");
    if (!attribute.harmless.empty())
      in_check.insert(std::string(attribute.name) + "=" + std::string(attribute.harmless));
  }
  CHECK(in_start == in_check);
}
