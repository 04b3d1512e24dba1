#include "pilot-agent/trouble.hpp"

#include <doctest/doctest.h>

using namespace glidepod;
using namespace glidepod::agent;

namespace {
kube::ContainerStatus waiting(std::string reason, std::string message) {
  kube::ContainerStatus status;
  status.state = kube::ContainerStatus::State::waiting;
  status.reason = std::move(reason);
  status.message = std::move(message);
  return status;
}
}  // namespace

TEST_CASE("trouble: what the kubelet says, and whose fault it is") {
  using Kind = Trouble::Kind;
  struct Row {
    const char* reason;
    const char* message;
    Kind kind;
  };
  for (const Row& row : {
           Row{"ContainerCreating", "", Kind::none},
           Row{"PodInitializing", "", Kind::none},
           Row{"ErrImagePull",
               "rpc error: code = NotFound desc = failed to resolve: docker.io/a:1: not found", Kind::user},
           Row{"ErrImagePull", "pull access denied, repository does not exist or may require authorization",
               Kind::user},
           Row{"ErrImagePull", "unexpected status code: 401 Unauthorized", Kind::user},
           Row{"ErrImagePull", "no match for platform in manifest", Kind::user},
           Row{"ErrImagePull", "dial tcp 10.0.0.1:443: connect: connection refused", Kind::passing},
           Row{"ErrImagePull", "toomanyrequests: access denied for now", Kind::passing},
           Row{"ErrImagePull", "lookup reg.example: no such host", Kind::passing},
           Row{"ImagePullBackOff", "Back-off pulling image \"a:1\"", Kind::passing},
           Row{"ImagePullBackOff", "Back-off pulling image \"a:1\": ErrImagePull: a:1: not found",
               Kind::user},
           Row{"InvalidImageName", "", Kind::user},
           Row{"ErrImageNeverPull", "not present with pull policy of Never", Kind::user},
           Row{"RunContainerError", "exec: no such file or directory", Kind::user},
           Row{"CreateContainerError", "context deadline exceeded", Kind::passing},
           Row{"CreateContainerError", "name is reserved for 1234", Kind::passing},
           Row{"CreateContainerError", "rpc error: code = Unavailable desc = transport is closing",
               Kind::passing},
           Row{"CreateContainerError",
               "rpc error: code = Unavailable desc = connection error: desc = \"transport: Error while "
               "dialing "
               "dial unix /run/containerd.sock: connect: no such file or directory\"",
               Kind::passing},
           Row{"CreateContainerError", "error reading from server: EOF", Kind::passing},
           Row{"CreateContainerError", "sandbox container \"0a1b\" is not running", Kind::passing},
           Row{"RunContainerError", "failed to create containerd task: ttrpc: closed: unknown",
               Kind::passing},
           Row{"RunContainerError", "no running task found: task 0a1b not found: not found", Kind::passing},
           Row{"RunContainerError", "context canceled", Kind::passing},
           Row{"CreateContainerConfigError", "secret \"x\" not found", Kind::passing},
           Row{"CrashLoopBackOff", "back-off 10s restarting failed container", Kind::passing},
       }) {
    CAPTURE(row.reason);
    CAPTURE(row.message);
    CHECK(trouble_of(waiting(row.reason, row.message)).kind == row.kind);
  }
}

TEST_CASE("trouble: a container that cannot start is told from one that is only held back") {
  auto status = waiting("CrashLoopBackOff", "back-off 10s");
  status.last_terminated = kube::Termination{"Error", "", 143, 0};
  CHECK(trouble_of(status).kind == Trouble::Kind::passing);
  status.last_terminated = kube::Termination{"StartError", "exec format error\nmore", 128, 0};
  CHECK(trouble_of(status).kind == Trouble::Kind::user);
  CHECK(trouble_of(status).message == "exec format error");
  status.state = kube::ContainerStatus::State::running;
  CHECK(trouble_of(status).kind == Trouble::Kind::none);
}
