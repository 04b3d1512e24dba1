#include "pilot-agent/peer_process.hpp"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/wire/socket.hpp"
#include "tests/temporary_folder.hpp"

using namespace glidepod;
using namespace glidepod::agent;

TEST_CASE(
    "peer: a process is in our container where its control groups are ours or below, in all hierarchies") {
  struct Row {
    const char* theirs;
    const char* own;
    bool within;
  };
  const std::string a(64, 'a'), b(64, 'b');
  const std::string pod = "0::/kubepods.slice/pod1/";
  CHECK(within_own_groups(pod + "cri-" + a + ".scope\n", pod + "cri-" + a + ".scope\n"));
  CHECK(within_own_groups(pod + "cri-" + a + ".scope/condor\n", pod + "cri-" + a + ".scope\n"));
  CHECK_FALSE(within_own_groups(pod + "cri-" + b + ".scope\n", pod + "cri-" + a + ".scope\n"));
  CHECK_FALSE(within_own_groups(pod + "cri-" + a + ".scope2\n", pod + "cri-" + a + ".scope\n"));
  CHECK_FALSE(within_own_groups(pod + "\n", pod + "cri-" + a + ".scope\n"));
  for (const Row& row : {
           // A namespace of control groups of its own.
           Row{"0::/\n", "0::/\n", true},
           Row{"0::/init\n", "0::/\n", true},
           Row{"0::/../b\n", "0::/\n", false},
           Row{"0::/..\n", "0::/\n", false},
           // Two hierarchies, one of which says that it is elsewhere.
           Row{"9:pids:/a\n0::/a\n", "9:pids:/a\n0::/a\n", true},
           Row{"9:pids:/b\n0::/a\n", "9:pids:/a\n0::/a\n", false},
           Row{"0::/a\n", "9:pids:/a\n0::/a\n", false},
           Row{"9:pids:/a\n5:cpu:/x\n0::/a\n", "9:pids:/a\n0::/a\n", true},
           Row{"1:name=systemd:/a:b\n", "1:name=systemd:/a:b\n", true},
           // Nothing is known.
           Row{"", "", false},
           Row{"0::/\n", "", false},
           Row{"", "0::/\n", false},
           Row{"nonsense", "nonsense", false},
       }) {
    CAPTURE(row.theirs);
    CAPTURE(row.own);
    CHECK(within_own_groups(row.theirs, row.own) == row.within);
  }
}

TEST_CASE("peer: who has connected is known while it lives, and nobody once it has ended") {
  const TemporaryFolder folder;
  const Fd listener = wire::listen_at(folder.path + "/s", 0600).value();
  const Fd own = wire::connect_to(folder.path + "/s").value();
  const PeerProcess self = find_peer_process(wire::accept_from(listener).value());
  CHECK(self.pidfd.valid());
  CHECK(self.in_own_container);
  CHECK(self.container_id.empty());
  // The connection lives on in another process.
  const pid_t child = ::fork();
  if (child == 0) {
    const auto connected = wire::connect_to(folder.path + "/s");
    char byte;
    if (connected && ::fork() == 0) (void)!::read(connected->get(), &byte, 1);  // until it is closed here
    ::_exit(0);
  }
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  const Fd orphan = wire::accept_from(listener).value();
  REQUIRE(orphan.valid());
  const PeerProcess gone = find_peer_process(orphan);
  CHECK_FALSE(gone.pidfd.valid());
  CHECK_FALSE(gone.in_own_container);
  CHECK(gone.container_id.empty());
}
