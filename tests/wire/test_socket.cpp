#include "lib/wire/socket.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/temporary_folder.hpp"

using namespace glidepod;
using namespace glidepod::wire;

TEST_CASE("socket: listen, connect, and the kernel's word for who called") {
  const TemporaryFolder folder;
  const std::string path = folder.path + "/s";
  CHECK(connect_to(path).error().code() == ENOENT);
  Fd listener = listen_at(path, 0600).value();
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0600);
  CHECK_FALSE(accept_from(listener).value().valid());
  const Fd client = connect_to(path).value();
  const Fd server = accept_from(listener).value();
  const Peer peer = peer_of(server).value();
  CHECK(peer.pid == ::getpid());
  CHECK(peer.uid == ::getuid());
  std::vector<gid_t> groups(static_cast<std::size_t>(::getgroups(0, nullptr)));
  REQUIRE(::getgroups(static_cast<int>(groups.size()), groups.data()) >= 0);
  CHECK(peer.groups == groups);
  listener.reset();
  CHECK(connect_to(path).error().code() == ECONNREFUSED);
  CHECK(listen_at(path, 0600).ok());  // replaces what an earlier run left
  CHECK_FALSE(listen_at(std::string(200, 'x'), 0600).ok());
}
