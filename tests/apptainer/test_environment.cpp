#include "pilot-agent/apptainer/environment.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>

using namespace glidepod;
using namespace glidepod::apptainer;
using Strings = std::vector<std::string>;

namespace {

// What the container gets, without the variables that every container gets.
Strings own(EnvironmentRules rules) {
  rules.image = "docker://r/a:1";
  rules.home = "/h";
  Strings all = container_environment(rules);
  std::erase_if(all, [](const std::string& variable) {
    for (const char* name :
         {"APPTAINER_CONTAINER=", "APPTAINER_NAME=", "APPTAINER_COMMAND=", "APPTAINER_BIND=",
          "SINGULARITY_CONTAINER=", "SINGULARITY_NAME=", "SINGULARITY_BIND=", "HOME="})
      if (variable.starts_with(name)) return true;
    return false;
  });
  return all;
}

}  // namespace

TEST_CASE("environment: rows of the real apptainer's own test table") {
  struct Row {
    const char* name;
    bool clean;
    Strings caller;
    Strings result;
  };
  // Its PATH of a container is the image's here, and so never listed.
  const Row rows[] = {
      {"no apptainer environment",
       false,
       {"LD_LIBRARY_PATH=/.singularity.d/libs", "HOME=/home/john", "PS1=test", "TERM=xterm-256color",
        "PATH=/usr/games:/usr/bin", "LANG=C", "APPTAINER_CONTAINER=/tmp/lolcow.sif", "PWD=/tmp", "LC_ALL=C",
        "APPTAINER_NAME=lolcow.sif"},
       {"LANG=C", "LC_ALL=C", "PS1=test", "PWD=/tmp", "TERM=xterm-256color"}},
      {"exclude APPTAINER_",
       false,
       {"APPTAINER_CONTAINER=/tmp/lolcow.sif", "SINGULARITY_BIND=/x", "CONTAINER=kept"},
       {"CONTAINER=kept"}},
      {"special PATH settings",
       false,
       {"APPTAINERENV_APPEND_PATH=/app", "APPTAINERENV_PREPEND_PATH=/pre", "PATH=/own"},
       {"SING_USER_DEFINED_APPEND_PATH=/app", "SING_USER_DEFINED_PREPEND_PATH=/pre"}},
      {"PATH replaces what was before or after it",
       false,
       {"APPTAINERENV_APPEND_PATH=/app", "APPTAINERENV_PATH=/my/path", "APPTAINERENV_PREPEND_PATH=/pre"},
       {"PATH=/my/path"}},
      {"override LD_LIBRARY_PATH",
       false,
       {"LD_LIBRARY_PATH=/foo/lib", "APPTAINERENV_LD_LIBRARY_PATH=/my/libs"},
       {"LD_LIBRARY_PATH=/my/libs"}},
      {"clean",
       true,
       {"PS1=test", "TERM=xterm-256color", "PATH=/usr/bin", "LANG=de", "PWD=/tmp", "LC_ALL=C",
        "APPTAINERENV_FOO=VAR", "CLEANENV=TRUE"},
       {"FOO=VAR", "LANG=C", "TERM=xterm-256color"}},
      {"always passed",
       true,
       {"http_proxy=p", "https_proxy=p", "no_proxy=p", "all_proxy=p", "ftp_proxy=p", "HTTP_PROXY=p",
        "HTTPS_PROXY=p", "NO_PROXY=p", "ALL_PROXY=p", "FTP_PROXY=p", "TERM=t", "FOO=VAR"},
       {"ALL_PROXY=p", "FTP_PROXY=p", "HTTPS_PROXY=p", "HTTP_PROXY=p", "LANG=C", "NO_PROXY=p", "TERM=t",
        "all_proxy=p", "ftp_proxy=p", "http_proxy=p", "https_proxy=p", "no_proxy=p"}},
      {"APPTAINERENV_ wins over the caller's, in either order",
       true,
       {"APPTAINERENV_HTTP_PROXY=in", "HTTP_PROXY=out", "TERM=out", "APPTAINERENV_TERM=in",
        "APPTAINERENV_LANG=fr"},
       {"HTTP_PROXY=in", "LANG=fr", "TERM=in"}},
      {"APPTAINERENV_ wins over SINGULARITYENV_",
       false,
       {"APPTAINERENV_FOO=a", "SINGULARITYENV_FOO=s", "SINGULARITYENV_BAR=s"},
       {"BAR=s", "FOO=a"}},
      {"never set",
       false,
       {"APPTAINERENV_HOME=/x", "APPTAINERENV_APPTAINER_SHELL=x", "SINGULARITYENV_SINGULARITY_APPNAME=x",
        "APPTAINERENV_=x", "NOVALUE", "=x"},
       {}},
      {"an app, as its option --app takes it from the caller",
       false,
       {"APPTAINER_APPNAME=a", "SINGULARITY_APPNAME=b"},
       {"SINGULARITY_APPNAME=a"}},
      {"values are bytes, and may be empty",
       false,
       {"APPTAINERENV_A=", "APPTAINERENV_B=x=y\n\xff", "C="},
       {"A=", "B=x=y\n\xff", "C="}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(own({.caller = row.caller, .clean = row.clean}) == row.result);
  }
}

TEST_CASE("environment: what HTCondor hands over, and what every container is told") {
  // Singularity::convertEnv gives each variable twice; the ones of retargetEnvs differ.
  const auto environment = container_environment(
      {.caller = {"_CONDOR_SCRATCH_DIR=/x/dir_7", "APPTAINERENV__CONDOR_SCRATCH_DIR=/srv",
                  "APPTAINER_CACHEDIR=/x/dir_7", "APPTAINERENV_APPTAINER_CACHEDIR=/x/dir_7",
                  "OMP_NUM_THREADS=2", "APPTAINERENV_OMP_NUM_THREADS=2", "APPTAINERENV_APPTAINER_NAME=outer"},
       .clean = true,
       .home = "/x/dir_7",
       .image = "docker://registry.example/group/alpine:3.19",
       .binds = {"/x/dir_7:/srv", "/cvmfs"}});
  CHECK(environment == Strings{"APPTAINER_BIND=/x/dir_7:/srv,/cvmfs", "APPTAINER_CACHEDIR=/x/dir_7",
                               "APPTAINER_COMMAND=exec",
                               "APPTAINER_CONTAINER=docker://registry.example/group/alpine:3.19",
                               "APPTAINER_NAME=alpine:3.19", "HOME=/x/dir_7", "LANG=C", "OMP_NUM_THREADS=2",
                               "SINGULARITY_BIND=/x/dir_7:/srv,/cvmfs",
                               "SINGULARITY_CONTAINER=docker://registry.example/group/alpine:3.19",
                               "SINGULARITY_NAME=alpine:3.19", "_CONDOR_SCRATCH_DIR=/srv"});
}

TEST_CASE("environment: --env wins over --env-file, and both over prefixed variables") {
  CHECK(own({.caller = {"APPTAINERENV_A=1", "APPTAINERENV_B=1", "APPTAINERENV_C=1"},
             .files = {"B=2", "C=2", "HOME=/no"},
             .options = {"C=3", "PREPEND_PATH=/p"},
             .clean = true}) == Strings{"A=1", "B=2", "C=3", "LANG=C", "SING_USER_DEFINED_PREPEND_PATH=/p"});
}

TEST_CASE("environment: the lines of an --env-file") {
  const auto text = read_environment_text("# comment\n\nA=1\nexport B = 2\n", "f");
  CHECK_FALSE(text.ok());  // a name with a blank is no name
  const auto good =
      read_environment_text("# comment\n\nA=1\r\n  export B=\"two words\"\nC='$HOME'\nD=\nE='\nF=a=b", "f");
  REQUIRE(good.ok());
  CHECK(good.value() == Strings{"A=1", "B=two words", "C=$HOME", "D=", "E='", "F=a=b"});
  struct Row {
    const char* text;
    const char* message;
  };
  for (const Row& row :
       {Row{"A=1\nB", "f line 2: not of the form NAME=VALUE"},
        Row{"=1", "f line 1: not of the form NAME=VALUE"},
        Row{"A=$HOME", "f line 1: would need a shell; only plain values are understood"},
        Row{"A=\"`id`\"", "f line 1: would need a shell; only plain values are understood"}}) {
    const auto bad = read_environment_text(row.text, "f");
    REQUIRE_FALSE(bad.ok());
    CHECK(bad.error().message() == row.message);
  }
}

TEST_CASE("environment: a variable is found by its whole name") {
  const Strings list{"AB=1", "A=2", "C"};
  CHECK(std::string(find_variable(list, "A")) == "2");
  CHECK(find_variable(list, "C") == nullptr);
  CHECK(find_variable(list, "B") == nullptr);
}
