#include "pilot-agent/apptainer/command_line.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "lib/base/text.hpp"

using namespace glidepod;
using namespace glidepod::apptainer;
using Strings = std::vector<std::string>;

namespace {

CommandLine parsed(const std::string& words) {
  auto line = parse_command_line(split(words, ' '));
  REQUIRE_MESSAGE(line.ok(), words << ": " << (line.ok() ? "" : line.error().message()));
  return *std::move(line);
}

std::string refused(const Strings& arguments) {
  const auto line = parse_command_line(arguments);
  REQUIRE_FALSE(line.ok());
  return line.error().message();
}

}  // namespace

TEST_CASE("command line: what HTCondor 23.9.6 calls") {
  struct Row {  // NOLINT(clang-analyzer-optin.performance.Padding): in the order of a command line
    const char* words;
    wire::Verb verb;
    const char* image;
    Strings argv;
    Strings binds;
    const char* cwd;
    const char* home;
    const char* work;
    bool clean, contain;
  };
  using enum wire::Verb;
  const Row rows[] = {
      // Singularity::setup, as recorded with file transfer
      {"-s exec -S /tmp -S /var/tmp -W /x/dir_7 --pwd /x/dir_7 -B /x/dir_7 --home /x/dir_7 -C "
       "docker://alpine:3.19 "
       "/x/dir_7/condor_exec.exe 25",
       exec,
       "docker://alpine:3.19",
       {"/x/dir_7/condor_exec.exe", "25"},
       {"/x/dir_7"},
       "/x/dir_7",
       "/x/dir_7",
       "/x/dir_7",
       true,
       true},
      // the same for Singularity::runTest: "-q test" in place of exec, no command
      {"-s -q test -S /tmp -S /var/tmp -W /x/dir_7 --pwd /x/dir_7 -B /x/dir_7 --home /x/dir_7 -C "
       "docker://alpine:3.19",
       test,
       "docker://alpine:3.19",
       {},
       {"/x/dir_7"},
       "/x/dir_7",
       "/x/dir_7",
       "/x/dir_7",
       true,
       true},
      // no PID namespaces; a GPU with OpenCL; SINGULARITY_TARGET_DIR and SINGULARITY_BIND_EXPR
      {"-s exec -W /x/dir_7 --pwd /srv -B /x/dir_7:/srv --nv -B /cvmfs:/cvmfs:ro -B /etc/OpenCL/vendors "
       "--home /x/dir_7 "
       "--contain --ipc --cleanenv docker://a/b:c /srv/run.sh -C --home",
       exec,
       "docker://a/b:c",
       {"/srv/run.sh", "-C", "--home"},
       {"/x/dir_7:/srv", "/cvmfs:/cvmfs:ro", "/etc/OpenCL/vendors"},
       "/srv",
       "/x/dir_7",
       "/x/dir_7",
       true,
       true},
      // no executable in the job: run, and no file transfer: another iwd, no --home
      {"-s run -S /tmp -B /home/u/job -W /x/dir_7 --pwd /home/u/job -B /x/dir_7 -C docker://a",
       run,
       "docker://a",
       {},
       {"/home/u/job", "/x/dir_7"},
       "/home/u/job",
       "",
       "/x/dir_7",
       true,
       true},
      // Singularity::canRun, first and second try
      {"exec -C /usr/libexec/condor/singularity_test_sandbox /exit_37",
       exec,
       "/usr/libexec/condor/singularity_test_sandbox",
       {"/exit_37"},
       {},
       "",
       "",
       "",
       true,
       true},
      {"exec --contain --ipc --cleanenv /usr/libexec/condor/exit_37.sif /exit_37",
       exec,
       "/usr/libexec/condor/exit_37.sif",
       {"/exit_37"},
       {},
       "",
       "",
       "",
       true,
       true},
  };
  for (const Row& row : rows) {
    CAPTURE(row.words);
    const CommandLine line = parsed(row.words);
    CHECK(line.action == CommandLine::Action::run_verb);
    CHECK(line.verb == row.verb);
    CHECK(line.image == row.image);
    CHECK(line.argv == row.argv);
    CHECK(line.binds == row.binds);
    CHECK(line.cwd == row.cwd);
    CHECK(line.home == row.home);
    CHECK(line.work_directory == row.work);
    CHECK(line.clean_environment == row.clean);
    CHECK(line.contain == row.contain);
  }
}

TEST_CASE("command line: options in every form that pflag takes") {
  for (const char* words :
       {"exec --workdir=/w --home=/h:/d -Ce -B/a,/b:/c:ro --rocm docker://i c",
        "exec -W/w -H /h:/d -Cei -B=/a -B /b:/c:ro --nv=true docker://i c",
        "exec -W=/w -H/h:/d -ecpiu --bind=/a --bind /b:/c:ro --nvccli docker://i c",
        "--debug -q --nocolor exec -v -Cs -W /w --home /h:/d --bind /a,,/b:/c:ro --nv -- docker://i c",
        "-dsqv exec --containall -eW/w -H=/h:/d -CB /a -B/b:/c:ro --nv docker://i c"}) {
    CAPTURE(words);
    const CommandLine line = parsed(words);
    CHECK(line.image == "docker://i");
    CHECK(line.argv == Strings{"c"});
    CHECK(line.work_directory == "/w");
    CHECK(line.home == "/h:/d");
    CHECK(line.binds == Strings{"/a", "/b:/c:ro"});
    CHECK(line.clean_environment);
    CHECK(line.contain);
  }
  CHECK_FALSE(parsed("exec -C --cleanenv=false docker://i c").clean_environment);
  CHECK(parsed("exec --nv=0 docker://i c").image == "docker://i");
  CHECK(parsed("exec docker://i c").own_umask);
  CHECK_FALSE(parsed("exec --no-umask docker://i c").own_umask);
  CHECK(parsed("exec --cwd /a --pwd /b docker://i c").cwd == "/b");
  CHECK(parsed("exec --writable-tmpfs -w --no-mount home,tmp --no-home --userns --pid docker://i c").image ==
        "docker://i");
  // What belongs to the job is never read as an option, nor "-" as one.
  CHECK(parsed("exec -- docker://i -x --nv").argv == Strings{"-x", "--nv"});
  CHECK(parsed("exec docker://i - --version").argv == Strings{"-", "--version"});
  CHECK(parse_command_line({"exec", "-B", "/a\\,b,/c", "docker://i", "", "c d"})->argv == Strings{"", "c d"});
  CHECK(parse_command_line({"exec", "-B", "/a\\,b,/c", "docker://i", "x"})->binds == Strings{"/a,b", "/c"});
}

TEST_CASE("command line: --env is one variable, or a comma list where it has several =") {
  CHECK(parsed("exec --env A=1,2 docker://i c").environment == Strings{"A=1,2"});
  CHECK(parsed("exec --env A=1,B=2 --env=C= docker://i c").environment == Strings{"A=1", "B=2", "C="});
  CHECK(parsed("exec --env-file /f --env-file=/g docker://i c").environment_files == Strings{"/f", "/g"});
  CHECK(refused({"exec", "--env", "A", "docker://i", "c"}) ==
        "option --env: 'A' is not of the form NAME=VALUE");
  CHECK(refused({"exec", "--env", "=1", "docker://i", "c"}) ==
        "option --env: '=1' is not of the form NAME=VALUE");
}

TEST_CASE("command line: version and help need no image") {
  using enum CommandLine::Action;
  for (const char* words : {"--version", "version", "-s --version", "exec --version"})
    CHECK(parsed(words).action == show_version);
  for (const char* words : {"--help", "-h", "help", "help exec", "exec --help", "test -h", "--help exec"})
    CHECK(parsed(words).action == show_help);
}

TEST_CASE("command line: what is wrong is named") {
  CHECK(refused({"exec", "-S", "/data", "docker://i", "c"}) ==
        "-S /data: a payload container has no scratch folders but /tmp and /var/tmp");
  struct Row {
    Strings arguments;
    const char* begin;
  };
  const Row rows[] = {
      {{}, "no command given; there are exec, run, test and version"},
      {{"-s"}, "no command"},
      {{"shell", "docker://i"}, "unknown command 'shell'"},
      {{""}, "unknown command ''"},
      {{"exec"}, "exec: no image given"},
      {{"test", "-C"}, "test: no image given"},
      {{"exec", "", "c"}, "exec: the image's name is empty"},
      {{"exec", "docker://i"}, "exec docker://i: no command to run in the image"},
      {{"--nv", "exec", "docker://i", "c"}, "option --nv is not supported before the command; these are: "},
      {{"exec", "--fakeroot", "docker://i", "c"}, "option --fakeroot is not supported; these are: "},
      {{"exec", "--overlay=/o", "docker://i", "c"}, "option --overlay is not supported; these are: "},
      {{"exec", "-Cf", "docker://i", "c"}, "option -f is not supported; these are: "},
      {{"exec", "--conta", "docker://i", "c"}, "option --conta is not supported"},
      {{"exec", "---nv", "docker://i", "c"}, "option ---nv is not supported"},
      {{"exec", "--=x", "docker://i", "c"}, "option -- is not supported"},
      {{"exec", "-\xff", "docker://i", "c"}, "option -\xff is not supported"},
      {{"exec", "--nv=maybe", "docker://i", "c"}, "option --nv: 'maybe' is neither true nor false"},
      {{"exec", "-C=", "docker://i", "c"}, "option -= is not supported"},
      {{"exec", "--pwd"}, "option --pwd needs a value"},
      {{"exec", "-CW"}, "option -W needs a value"},
  };
  for (const Row& row : rows) {
    const std::string message = refused(row.arguments);
    CHECK_MESSAGE(message.starts_with(row.begin), message << " / " << row.begin);
    CHECK(message.find('\n') == std::string::npos);
  }
  const std::string all = understood_options();
  for (const char* option :
       {"-B/--bind", "-C/--containall", "--home", "--nv", "-S/--scratch", "-W/--workdir"})
    CHECK(all.find(option) != std::string::npos);
}

TEST_CASE("command line: a wrong one still tells whether it is a test") {
  CHECK(asks_for_test({"-s", "-q", "test", "--nonsense", "i"}));
  CHECK_FALSE(asks_for_test({"-s", "exec", "--nonsense", "test"}));
  CHECK_FALSE(asks_for_test({}));
}
