#include "pilot-agent/apptainer/request.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "lib/base/text.hpp"
#include "pilot-agent/apptainer/environment.hpp"

using namespace glidepod;
using namespace glidepod::apptainer;
using Strings = std::vector<std::string>;

namespace {

const Surroundings k_starter{.environment = {"_CONDOR_SCRATCH_DIR=/x/dir_7",
                                             "APPTAINERENV__CONDOR_SCRATCH_DIR=/srv", "HOME=/home/slot1"},
                             .cwd = "/x/dir_7",
                             .umask = 077,
                             .limits = {{RLIMIT_CORE, 0, 5}}};

Result<BindRequest> request(const std::string& words, const Surroundings& surroundings = k_starter) {
  return make_request(TRY(parse_command_line(split(words, ' '))), surroundings);
}

wire::Bind bind_of(const std::string& words, const Surroundings& surroundings = k_starter) {
  auto made = request(words, surroundings);
  REQUIRE_MESSAGE(made.ok(), (made.ok() ? "" : made.error().message()));
  return made->bind;
}

}  // namespace

TEST_CASE("request: what the caller is becomes the message") {
  const wire::Bind bind = bind_of("exec -C --nv -W /x/dir_7 -B /x/dir_7 --home /x/dir_7 docker://a c d");
  CHECK(bind.protocol == wire::k_protocol);
  CHECK(bind.verb == wire::Verb::exec);
  CHECK(bind.image == "docker://a");
  CHECK(bind.argv == Strings{"c", "d"});
  CHECK(bind.cwd == "/x/dir_7");
  CHECK(bind.home == "/x/dir_7");
  CHECK(bind.work_directory == "/x/dir_7");
  CHECK(bind.binds == Strings{"/x/dir_7"});
  CHECK(bind.umask == 077);
  REQUIRE(bind.limits.size() == 1);
  CHECK(bind.limits[0].hard == 5);
  CHECK(bind.launched_marker == "");
  CHECK_FALSE(bind.program_attached);
  CHECK(bind_of("exec --no-umask docker://a c").umask == 022);
  CHECK(bind_of("test docker://a").argv.empty());
}

TEST_CASE("request: home is --home's destination, the work directory of --contain, or the caller's") {
  CHECK(bind_of("exec --home /x:/home/u docker://a c").home == "/home/u");
  CHECK(bind_of("exec --home /x:/home/u -B /b docker://a c").binds == Strings{"/b", "/x:/home/u"});
  CHECK(bind_of("exec -C -W /x/dir_7 docker://a c").home == "/x/dir_7");
  CHECK(bind_of("exec -W /x/dir_7 docker://a c").home == "/home/slot1");
  CHECK(bind_of("exec docker://a c", {.cwd = "/"}).home == "/");
  CHECK(request("exec --home u docker://a c").error().message() ==
        "option --home: 'u' is not an absolute path");
  CHECK(request("exec --home /x: docker://a c").error().message() ==
        "option --home: '/x:' is not an absolute path");
  CHECK(request("exec --pwd . docker://a c").error().message() ==
        "option --pwd: '.' is not an absolute path");
}

TEST_CASE("request: HTCondor's container launcher is taken out and its duty handed on") {
  const std::string wrapped =
      "-s exec -S /tmp -B /usr/libexec/condor/condor_container_launcher.sh:/condor_container_launcher.sh "
      "-W /x/dir_7 -B /x/dir_7:/srv --home /x/dir_7 -C docker://a /condor_container_launcher.sh /srv/run.sh "
      "1";
  const wire::Bind bind = bind_of(wrapped);
  CHECK(bind.argv == Strings{"/srv/run.sh", "1"});
  CHECK(bind.binds == Strings{"/x/dir_7:/srv"});
  CHECK(bind.launched_marker == "/srv/.condor_container_launched");
  CHECK(std::string(find_variable(bind.environment, "APPTAINER_BIND")) == "/x/dir_7:/srv");

  // Without the bind it is still the launcher; only as the command itself.
  CHECK(bind_of("exec docker://a /condor_container_launcher.sh c").argv == Strings{"c"});
  CHECK(bind_of("exec docker://a echo /condor_container_launcher.sh").launched_marker == "");
  // HTCondor's test of the image has the bind and no command.
  const wire::Bind test =
      bind_of("test -B /l/condor_container_launcher.sh:/condor_container_launcher.sh docker://a");
  CHECK(test.binds.empty());
  CHECK(test.launched_marker == "");

  CHECK(request("exec docker://a /condor_container_launcher.sh").error().message() ==
        "docker://a: no command after /condor_container_launcher.sh");
  for (const char* scratch : {"X=1", "APPTAINERENV__CONDOR_SCRATCH_DIR=relative"})
    CHECK(
        request("exec -C docker://a /condor_container_launcher.sh c", {.environment = {scratch}, .cwd = "/"})
            .error()
            .message() ==
        "docker://a: the job has no absolute _CONDOR_SCRATCH_DIR, which "
        "/condor_container_launcher.sh needs");
}

TEST_CASE("request: this process's own surroundings") {
  const mode_t old = ::umask(027);
  const Surroundings own = Surroundings::of_this_process();
  CHECK(::umask(old) == 027);
  CHECK(own.umask == 027);
  CHECK(own.cwd.starts_with('/'));
  CHECK(own.limits.size() == RLIM_NLIMITS);
  CHECK(find_variable(own.environment, "PATH") != nullptr);
}

TEST_CASE("request: an --env-file that cannot be read is named") {
  CHECK(request("exec --env-file /none docker://a c").error().message() ==
        "option --env-file: open /none: No such file or directory");
}

TEST_CASE("request: a directory is HTCondor's probe only where there is no job, names are for the agent") {
  CHECK(request("exec -C / /bin/sh").error().message().starts_with("/: directories are not supported here"));
  for (const char* words : {"exec -C -W /x/dir_7 / /bin/sh", "test -C /", "exec -C /none.sif /exit_37",
                            "exec -C alpine:3.19 sh", "exec -C docker:///usr sh"}) {
    CAPTURE(words);
    CHECK_FALSE(bind_of(words).program_attached);
  }
}
