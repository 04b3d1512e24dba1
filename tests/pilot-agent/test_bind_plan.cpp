#include "pilot-agent/bind_plan.hpp"

#include <doctest/doctest.h>

using namespace glidepod;
using namespace glidepod::agent;

namespace {
const Shared k_shared{"/glidepod/scratch", {"/etc/hosts", "/cvmfs"}};
const Caller k_caller{20001, 20001, {30001}, "slot1"};
}  // namespace

TEST_CASE("bind plan: what is there already needs nothing, the rest of the sandbox a link") {
  struct Row {
    const char* bind;
    const char* link;  // of a path to a target, or empty
  };
  for (const Row& row :
       {Row{"/glidepod/scratch/dir_1", ""}, Row{"/glidepod/scratch/dir_1:/glidepod/scratch/dir_1:rw", ""},
        Row{"/glidepod/scratch/dir_1/:/glidepod/scratch/./dir_1", ""},
        Row{"/glidepod/scratch/dir_1:/srv", "/srv /glidepod/scratch/dir_1"},
        Row{"/glidepod/scratch/dir_1/x:/data:ro", "/data /glidepod/scratch/dir_1/x"},
        Row{"/usr/libexec/condor_launcher:/condor_container_launcher.sh:ro", ""}, Row{"/etc/hosts", ""},
        Row{"/cvmfs/x.example:/cvmfs/x.example", ""}}) {
    CAPTURE(row.bind);
    const auto links = plan_binds({row.bind}, k_shared);
    REQUIRE(links.ok());
    std::string text;
    for (const auto& link : links.value()) text += link.path + " " + link.target;
    CHECK(text == row.link);
  }
}

TEST_CASE("bind plan: what is not there is refused by name") {
  for (const char* bind : {"/data", "/data:/data", "/cvmfs:/other", "/glidepod/scratch2", "relative:/x",
                           "/glidepod/scratch/../run", "/glidepod/scratch/a:/", "/glidepod/scratch/a:x",
                           "/glidepod/scratch/a:/glidepod/scratch/b", ""}) {
    CAPTURE(bind);
    const auto links = plan_binds({bind}, k_shared);
    REQUIRE_FALSE(links.ok());
    CHECK(links.error().message().starts_with(std::string("bind ") + bind + ":"));
  }
}

TEST_CASE("bind plan: the launch is the caller's as the kernel knows it, never root's") {
  wire::Bind bind;
  bind.argv = {"/bin/true"};
  bind.cwd = "/srv";
  bind.umask = 077;
  bind.binds = {"/glidepod/scratch/dir_1:/srv"};
  const auto launch = plan_launch(bind, k_caller, k_shared).value();
  CHECK(launch.uid == 20001);
  CHECK(launch.groups == std::vector<std::uint32_t>{30001});
  CHECK(launch.user_name == "slot1");
  CHECK(launch.umask == 077);
  CHECK(launch.links.size() == 1);

  Caller root = k_caller;
  root.uid = 0;
  CHECK(plan_launch(bind, root, k_shared).error().message().starts_with("root cannot run"));
  bind.argv.clear();
  CHECK(plan_launch(bind, k_caller, k_shared).error().message().starts_with("no command given"));
  // A run has its image's, but a program of the pilot's is no image.
  bind.verb = wire::Verb::run;
  CHECK(plan_launch(bind, k_caller, k_shared).ok());
  bind.program_attached = true;
  CHECK(plan_launch(bind, k_caller, k_shared).error().message().starts_with("no command given"));
  bind.program_attached = false;
  bind.verb = wire::Verb::test;
  CHECK(plan_launch(bind, k_caller, k_shared).ok());
}
