// `apptainer run` against registries that do not answer, or must not be asked. A real one is in
// tests/e2e/chain.
#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include "tests/pilot-agent/small_cluster.hpp"

using namespace glidepod;
using namespace glidepod::agent;

namespace {

const std::string k_metadata = "docker://169.254.169.254/latest:1";
const std::string k_silent = "docker://127.0.0.1:1/x:1";  // nobody listens there

struct Cluster : SmallCluster {
  Cluster() : SmallCluster(1, {"PULL_PATIENCE=1s", "INSECURE_REGISTRIES=127.0.0.1:1"}) {
    registry["169.254.169.254/latest"] = "sha256:" + std::string(64, 'a');
    registry["127.0.0.1:1/x"] = "sha256:" + std::string(64, 'b');
    REQUIRE(until([&] { return logged("event=pod"); }));
  }
};

bool not_root() {
  if (::geteuid() == 0) return false;
  MESSAGE("skipped: needs root");
  return true;
}

}  // namespace

TEST_CASE("agent: a job cannot have the agent ask a metadata address") {
  if (not_root()) return;
  Cluster c;
  const auto ran = c.run({.image = k_metadata, .argv = {}, .verb = "run"});
  CHECK(ran.status == ExitStatus::exited(255));
  CHECK(ran.out.find("link-local or metadata address") != std::string::npos);
  // The container is none the worse, and what is no run asks nobody.
  CHECK(c.run({k_metadata, {"/bin/true"}}).status.success());
  CHECK(c.run({.image = k_metadata, .argv = {}, .verb = "test"}).status.success());
}

TEST_CASE("agent: a registry that cannot be reached is the infrastructure's fault, after some patience") {
  if (not_root()) return;
  Cluster c;
  const auto ran = c.run({.image = k_silent, .argv = {"x"}, .verb = "run"});
  CHECK(ran.status == ExitStatus::exited(125));
  CHECK(ran.out.find("could not be read") != std::string::npos);
  CHECK(c.run({k_silent, {"/bin/true"}}).status.success());
}

TEST_CASE("agent: who asked may go before the registry answers") {
  if (not_root()) return;
  Cluster c;
  const int job = c.start({.image = k_silent, .argv = {}, .verb = "run"});
  REQUIRE(c.until([&] { return c.logged("event=ask_image"); }));
  REQUIRE(c.child(job).signal(SIGKILL).ok());
  CHECK(c.wait(job).status == ExitStatus::signaled(SIGKILL));
  CHECK(c.run({k_silent, {"/bin/true"}}).status.success());
  c.idle(Milliseconds(1'500));
  CHECK_FALSE(c.logged("event=bind_failed"));
}
