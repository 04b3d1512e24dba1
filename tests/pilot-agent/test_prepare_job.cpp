// The hook that binds a job before it starts, with a stand-in for `apptainer`.

#include <doctest/doctest.h>
#include <stdio.h>
#include <stdlib.h>

#include <array>
#include <string>

#include "lib/base/file.hpp"

using namespace glidepod;

namespace {

// What the hook answers to HTCondor when `apptainer test` says so and the job has this ad.
std::string answer(int status, const std::string& said, const std::string& ad) {
  std::string folder = "/tmp/prepare-job-XXXXXX";
  REQUIRE(::mkdtemp(folder.data()) != nullptr);
  REQUIRE(replace_file(folder + "/apptainer", fmt::format("#!/bin/sh\necho '{}'\nexit {}\n", said, status),
                       0755));
  REQUIRE(replace_file(folder + "/ad", "SingularityImage = \"docker://a:1\"\n" + ad, 0644));
  const std::string command =
      fmt::format("PATH={0}:$PATH _CONDOR_SCRATCH_DIR={0} {1} <{0}/ad; rm -rf {0}", folder, PREPARE_JOB);
  FILE* const pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 4096> text{};
  const std::size_t got = ::fread(text.data(), 1, text.size(), pipe);
  ::pclose(pipe);
  return {text.data(), got};
}

}  // namespace

TEST_CASE(
    "prepare-job: the third start that came to nothing says so, an earlier one and the user's fault do not") {
  const std::string third = "NumJobStarts = 1\nNumShadowStarts = 4\n";
  CHECK(answer(0, "", third).empty());
  CHECK(answer(125, "no route", "NumShadowStarts = 2\n") ==
        "HookStatusCode = 300\nHookStatusMessage = \"no route\"\n");
  CHECK(
      answer(125, "no route", third) ==
      "HookStatusCode = 300\nHookStatusMessage = \"3 starts of this job have come to nothing for want of its "
      "image docker://a:1: no route\"\n");
  CHECK(answer(255, "manifest unknown", third) ==
        "HookStatusCode = 1\nHookStatusMessage = \"manifest unknown\"\n");
}
