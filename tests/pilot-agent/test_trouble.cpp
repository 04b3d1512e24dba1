#include "pilot-agent/core/trouble.hpp"

#include <doctest/doctest.h>

#include <map>

#include "lib/base/file.hpp"
#include "lib/base/text.hpp"

using namespace glidepod;
using namespace glidepod::agent;
using Kind = Trouble::Kind;

namespace {
kube::ContainerStatus waiting(std::string reason, std::string message) {
  kube::ContainerStatus status;
  status.state = kube::ContainerStatus::State::waiting;
  status.reason = std::move(reason);
  status.message = std::move(message);
  return status;
}
}  // namespace

TEST_CASE("trouble: each sentence that is known, and whose fault it is") {
  const std::map<std::string, Kind> kinds = {{"none", Kind::none},
                                             {"busy", Kind::busy},
                                             {"passing", Kind::passing},
                                             {"unknown", Kind::unknown},
                                             {"user", Kind::user}};
  const auto text = read_file(AGENT_TROUBLE, 1 << 20);
  REQUIRE(text.ok());
  int rows = 0;
  for (const std::string& line : split(*text, '\n')) {
    if (line.empty() || line.starts_with('#')) continue;
    const auto cells = split(line, '\t');
    CAPTURE(line);
    REQUIRE(cells.size() == 5);
    REQUIRE(kinds.contains(cells[0]));
    for (const auto credentials : {Credentials::none, Credentials::some}) {
      if (cells[2] == (credentials == Credentials::none ? "some" : "none")) continue;
      const Trouble trouble = trouble_of(waiting(cells[3], cells[4]), credentials);
      CHECK(trouble.kind == kinds.at(cells[0]));
      const bool no_host = cells[4].find("no such host") != std::string::npos;
      CHECK(trouble.counts == (trouble.kind == Kind::unknown || trouble.kind == Kind::user || no_host));
    }
    ++rows;
  }
  CHECK(rows > 60);
}

TEST_CASE("trouble: a container that cannot start is told from one that is only held back") {
  auto status = waiting("CrashLoopBackOff", "back-off 10s");
  status.last_terminated = kube::Termination{"Error", "", 143, 0};
  CHECK(trouble_of(status).kind == Kind::passing);
  CHECK(trouble_of(status).back_off);
  status.last_terminated = kube::Termination{"StartError", "mkdir /glidepod: not a directory\nmore", 128, 0};
  CHECK(trouble_of(status).kind == Kind::user);
  CHECK(trouble_of(status).message == "mkdir /glidepod: not a directory");
  status.last_terminated = kube::Termination{"StartError", "exec format error", 128, 0};
  CHECK(trouble_of(status).kind == Kind::unknown);
  status.state = kube::ContainerStatus::State::running;
  CHECK(trouble_of(status).kind == Kind::none);
}

TEST_CASE("trouble: what is known to pass is waited for longer than what nobody knows") {
  const Policy policy;
  CHECK(patience_with({Kind::passing, "", false, false}, policy) == policy.pull_patience);
  CHECK(patience_with({Kind::unknown, "", false, false}, policy) < policy.pull_patience);
}

TEST_CASE("trouble: where nothing else is said the reason is what people are told") {
  for (const char* reason : {"ErrImagePull", "InvalidImageName", "CreateContainerError"}) {
    CHECK(trouble_of(waiting(reason, "")).message == reason);
    CHECK(trouble_of(waiting(reason, "its words\nand more")).message == "its words");
  }
}
