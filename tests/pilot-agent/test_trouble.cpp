#include "pilot-agent/core/trouble.hpp"

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
           Row{"ErrImagePull", "no match for platform in manifest", Kind::user},
           Row{"ErrImagePull", "dial tcp 10.0.0.1:443: connect: connection refused", Kind::passing},
           Row{"ErrImagePull", "toomanyrequests: access denied for now", Kind::passing},
           Row{"ErrImagePull", "lookup reg.example: no such host", Kind::passing},
           Row{"ImagePullBackOff", "Back-off pulling image \"a:1\"", Kind::passing},
           Row{"ImagePullBackOff",
               "Back-off pulling image \"a:1\": ErrImagePull: rpc error: code = NotFound desc = failed to "
               "pull and unpack image \"docker.io/library/a:1\": failed to resolve reference "
               "\"docker.io/library/a:1\": docker.io/library/a:1: not found",
               Kind::user},
           Row{"InvalidImageName", "", Kind::user},
           Row{"ErrImageNeverPull", "not present with pull policy of Never", Kind::user},
           // A file in the way of the volume: runc, then crun.
           Row{"RunContainerError",
               "error mounting \"/var/lib/kubelet/pods/1/volumes/kubernetes.io~empty-dir/shared\" to rootfs "
               "at "
               "\"/glidepod/bin\": mkdir /run/containerd/1/rootfs/glidepod: not a directory: unknown",
               Kind::user},
           Row{"CreateContainerError", "crun: creating `glidepod`: openat2: Not a directory", Kind::user},
           Row{"RunContainerError",
               "OCI runtime create failed: chdir to cwd (\"/home/a\") set in config.json failed: permission "
               "denied: unknown",
               Kind::user},
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

TEST_CASE("trouble: what a node, a runtime or a site's credentials want for is nobody's job's fault") {
  for (const auto& [reason, message] : {
           std::pair{"CreateContainerError", "write /var/lib/containerd/1: no space left on device"},
           std::pair{"RunContainerError",
                     "fork/exec /usr/bin/runc: resource temporarily unavailable: unknown"},
           std::pair{"RunContainerError", "error during container init: cannot allocate memory: unknown"},
           std::pair{
               "CreateContainerError",
               "failed to create containerd container: error unpacking image: failed to extract layer "
               "sha256:80: failed to get reader from content store: content digest sha256:27: not found"},
           std::pair{
               "RunContainerError",
               "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.4, please update "
               "your driver to a newer version, or use an earlier cuda container: unknown"},
           std::pair{"RunContainerError",
                     "unable to start container process: exec: \"/glidepod/bin/glue\": stat "
                     "/glidepod/bin/glue: no such file or directory: unknown"},
           std::pair{"RunContainerError",
                     "unable to apply cgroup configuration: mkdir /sys/fs/cgroup/1: permission denied"},
           std::pair{"CreateContainerError", "something that nobody has seen yet"},
           std::pair{
               "ErrImagePull",
               "failed to extract layer sha256:80: write /var/lib/containerd/1: no space left on device"},
           std::pair{"ErrImagePull",
                     "failed to copy: httpReadSeeker: failed open: content at https://a/v2/b/blobs/sha256:80 "
                     "not found: not found"},
           std::pair{"ErrImagePull", "open /var/lib/containers/storage/overlay/l: permission denied"},
           std::pair{"ErrImagePull",
                     "failed to resolve reference \"docker.io/a/b:1\": failed to authorize: failed to fetch "
                     "oauth token: unexpected status from POST request to https://auth.docker.io/token: 401 "
                     "Unauthorized"},
           std::pair{"ErrImagePull",
                     "pull access denied for a/b, repository does not exist or may require 'docker login': "
                     "denied: Your authorization token has expired. Reauthenticate and try again."},
           std::pair{"ErrImagePull",
                     "pull access denied, repository does not exist or may require authorization: server "
                     "message: invalid_token: authorization failed"},
           std::pair{"ErrImagePull",
                     "pulling from host 1.dkr.ecr.us-east-1.amazonaws.com failed with status code [manifests "
                     "1]: 403 Forbidden"},
           std::pair{"ErrImagePull", "unexpected status code: 401 Unauthorized"},
           std::pair{
               "ErrImagePull",
               "(Mirrors also failed: [mirror.example/a: manifest unknown]): pinging container registry "
               "docker.io: dial tcp: i/o timeout"},
           std::pair{"ImageInspectError", "Failed to inspect image \"a:1\": permission denied"},
       }) {
    CAPTURE(std::string(reason));
    CAPTURE(std::string(message));
    CHECK(trouble_of(waiting(reason, message), Credentials::some).kind == Trouble::Kind::passing);
  }
}

TEST_CASE("trouble: a registry that refuses a repository, whoever asks, is the user's affair") {
  for (
      const auto* message : {
          "rpc error: code = Unknown desc = failed to pull and unpack image \"docker.io/no/such:1\": failed "
          "to "
          "resolve reference \"docker.io/no/such:1\": pull access denied, repository does not exist or may "
          "require authorization: server message: insufficient_scope: authorization failed",
          "failed to resolve reference \"quay.io/no/such:1\": unexpected status from HEAD request to "
          "https://quay.io/v2/no/such/manifests/1: 401 UNAUTHORIZED",
          "failed to resolve reference \"ghcr.io/no/such:1\": failed to authorize: failed to fetch anonymous "
          "token: unexpected status from GET request to https://ghcr.io/token?scope=x: 403 Forbidden",
          "failed to resolve reference \"ghcr.io/no/such:1\": unexpected status from HEAD request to "
          "https://ghcr.io/v2/no/such/manifests/1: 403 Forbidden",
          "reading manifest latest in docker.io/crio/busybox: errors: denied: requested access to the "
          "resource "
          "is denied unauthorized: authentication required",
          "reading manifest 1 in quay.io/no/such: unauthorized: access to the requested resource is not "
          "authorized",
          "choosing image instance: no image found in image index for architecture \"arm64\", variant \"v8\"",
          "initializing source docker://localhost:5000/a:1: reading manifest 1 in localhost:5000/a: name "
          "unknown: repository name not known to registry",
      }) {
    CAPTURE(std::string(message));
    CHECK(trouble_of(waiting("ErrImagePull", message)).kind == Trouble::Kind::user);
  }
  CHECK(trouble_of(waiting("SignatureValidationFailed", "")).kind == Trouble::Kind::user);
}

TEST_CASE(
    "trouble: a bare 401 is the image's affair only where the pod has no credentials that it could mean") {
  for (const auto* message :
       {"unexpected status code [manifests 1]: 401 Unauthorized",
        "reading manifest 1 in registry.example/a: unauthorized: authentication required"}) {
    CAPTURE(std::string(message));
    CHECK(trouble_of(waiting("ErrImagePull", message), Credentials::none).kind == Trouble::Kind::user);
    CHECK(trouble_of(waiting("ErrImagePull", message), Credentials::some).kind == Trouble::Kind::passing);
  }
  for (const auto* message : {"failed to fetch oauth token: unexpected status: 401 Unauthorized",
                              "pulling from host a failed with status code [manifests 1]: 403 Forbidden"})
    CHECK(trouble_of(waiting("ErrImagePull", message), Credentials::none).kind == Trouble::Kind::passing);
}
