#include "pilot-agent/core/trouble.hpp"

#include <algorithm>
#include <array>

#include "lib/base/text.hpp"
#include "lib/kube/wait_reason.hpp"

namespace glidepod::agent {
namespace {

// Words that mean that the image, or the user who named it, is at fault. A row matches when a message has all
// of its words. The words are those of containerd 1.6 to 2.2, CRI-O and podman (containers/image), runc and
// crun; tests/pilot-agent/trouble.tsv has whole sentences. For any other words the pilot finds out who is at
// fault: it tries an image that is surely on the node.
using Row = std::array<std::string_view, 3>;  // an empty word matches anything
constexpr std::array k_pull_faults = {
    // There is no such image.
    Row{"manifest unknown"}, Row{"manifest_unknown"}, Row{"name unknown"}, Row{"name_unknown"},
    Row{"repository name not known"}, Row{"failed to resolve", ": not found"}, Row{"invalid reference"},
    Row{"invalid tag format"},
    // The registry knows who asks, perhaps without credentials, and does not give this repository to them.
    // Docker Hub, quay.io and ghcr.io say the same of names that do not exist. Bad credentials fail earlier,
    // when a token is asked for, or are among k_passing. A bare 401 or 403 may mean either: k_refused.
    Row{"pull access denied"}, Row{"insufficient_scope"}, Row{"requested access to the resource is denied"},
    Row{"access to the requested resource is not authorized"},
    Row{"failed to fetch anonymous token", "401 unauthorized"},
    Row{"failed to fetch anonymous token", "403 forbidden"},
    Row{"reference \"quay.io/", "manifests", "401 unauthorized"},
    Row{"reference \"ghcr.io/", "manifests", "403 forbidden"},
    // The image is for other machines, or in a format that runtimes no longer support.
    Row{"no match for platform"}, Row{"no matching manifest"}, Row{"no image found in manifest list"},
    Row{"no image found in image index"}, Row{"no longer supported since containerd"},
    Row{"schema 1 image manifests are no longer supported"},
    // The artifact is no container image, but a SIF, a chart or an attestation.
    Row{"unsupported image-specific operation on artifact"}, Row{"unsupported docker v2s2 media type"},
    Row{"mismatched image rootfs and manifest layers"}};
constexpr std::array k_start_faults = {
    // The image has a file, or a link to itself, where the pod mounts a volume.
    Row{"not a directory"}, Row{"too many levels of symbolic links"},
    // The image's WORKDIR or USER does not exist.
    Row{"chdir to cwd"}, Row{"cannot chdir to"}, Row{"no matching entries in passwd file"},
    Row{"unable to find user"},
    // The image has more layers than the kernel can mount. An "exec format error" is not listed: the
    // container starts glue, which does not come from the image.
    Row{"max depth exceeded"}};
// The kubelet's own limit (registryPullQPS, registryBurst).
constexpr std::array<Row, 1> k_busy = {Row{"pull qps exceeded"}};
// Trouble that may pass, even if the message has words from above too.
constexpr std::array k_passing = {
    // These may come from a mirror that was asked first, while the registry itself did not answer.
    Row{"too many requests"}, Row{"toomanyrequests"}, Row{"timeout"}, Row{"deadline exceeded"},
    Row{"connection refused"}, Row{"connection reset"}, Row{"no such host"}, Row{"service unavailable"},
    Row{"bad gateway"}, Row{"unexpected eof"},
    // Credentials that the site has to renew.
    Row{"expired"}, Row{"invalid_token"}, Row{"oauth token"},
    // A node that lacks something.
    Row{"no space left"}, Row{"is reserved for"},
    // A runtime that is ending or starting itself.
    Row{"code = unavailable"}, Row{"transport is closing"}, Row{"error reading from server"},
    Row{"context canceled"}, Row{"code = aborted"}, Row{"ttrpc: closed"}, Row{"no running task"},
    Row{"sandbox container"}, Row{"unknown state"}};

// Refusals that are the image's fault if the pod has no credentials: the image cannot be pulled without them.
constexpr std::array k_refused = {Row{"401 unauthorized"}, Row{"authentication required"},
                                  Row{"unauthorized: "}};

template <std::size_t N>
bool has_row(const std::string& text, const std::array<Row, N>& rows) {
  return std::ranges::any_of(rows, [&text](const Row& row) {
    return std::ranges::all_of(
        row, [&text](std::string_view words) { return text.find(words) != std::string::npos; });
  });
}

Trouble by_words(std::string_view reason, std::string_view message, auto is_fault) {
  using Kind = Trouble::Kind;
  const std::string text = lower_case(message);
  Trouble trouble{Kind::unknown, message.empty() ? std::string(reason) : one_line(message), false, false};
  // If a host name is unknown, either the name or the node's DNS is wrong.
  trouble.counts = text.find("no such host") != std::string::npos;
  if (has_row(text, k_busy))
    trouble.kind = Kind::busy;
  else if (has_row(text, k_passing))
    trouble.kind = Kind::passing;
  else if (is_fault(text))
    trouble.kind = Kind::user;
  trouble.counts |= trouble.kind == Kind::unknown || trouble.kind == Kind::user;
  return trouble;
}

Trouble of_pull(std::string_view reason, std::string_view message, Credentials credentials) {
  return by_words(reason, message, [credentials](const std::string& text) {
    return has_row(text, k_pull_faults) || (credentials == Credentials::none && has_row(text, k_refused));
  });
}

// The trouble of a message that only says that the kubelet waits.
Trouble of_pause(std::string_view message) {
  return {Trouble::Kind::passing, one_line(message), true, false};
}

}  // namespace

Trouble trouble_of(const kube::ContainerStatus& status, Credentials credentials) {
  const auto is_start_fault = [](const std::string& text) { return has_row(text, k_start_faults); };
  if (status.state != kube::ContainerStatus::State::waiting) return {};
  const std::string& reason = status.reason;
  switch (kube::wait_reason_of(reason)) {
    case kube::WaitReason::pull: {
      const Trouble trouble = of_pull(reason, status.message, credentials);
      // From Kubernetes 1.31 on the words of the last pull follow.
      const bool pause =
          reason == "ImagePullBackOff" && status.message.find("ErrImagePull") == std::string::npos;
      return pause && trouble.kind != Trouble::Kind::user ? of_pause(status.message) : trouble;
    }
    case kube::WaitReason::never:
      return {Trouble::Kind::user, status.message.empty() ? reason : one_line(status.message), false, true};
    case kube::WaitReason::create:
      return by_words(reason, status.message, is_start_fault);
    case kube::WaitReason::config:
      return {Trouble::Kind::passing, one_line(status.message), false, false};
    case kube::WaitReason::back_off: {
      // A back-off only says that the kubelet waits before it starts this image again. Another field of the
      // status tells how the last start ended.
      const auto& last = status.last_terminated;
      if (last && kube::never_started(last->reason))
        return by_words(last->reason, last->message, is_start_fault);
      return of_pause(status.message);
    }
    case kube::WaitReason::other:
      break;
  }
  return {};
}

std::chrono::seconds patience_with(const Trouble& trouble, const Policy& policy) {
  constexpr std::chrono::seconds k_unknown{30};
  return trouble.kind == Trouble::Kind::unknown ? std::min(k_unknown, policy.pull_patience)
                                                : policy.pull_patience;
}

wire::Fault fault_of(const kube::Failure& failure) {
  if (failure.kind != kube::Failure::Kind::status) return wire::Fault::infrastructure;
  const std::string text = lower_case(failure.message);
  const bool by_rule = text.find("denied") != std::string::npos && text.find("request") != std::string::npos;
  if (failure.status == 422 || (failure.status == 403 && by_rule)) return wire::Fault::user;
  return wire::Fault::infrastructure;
}

}  // namespace glidepod::agent
