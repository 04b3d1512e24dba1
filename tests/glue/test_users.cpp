#include "glue/users.hpp"

#include <doctest/doctest.h>

using namespace glidepod::glue;

TEST_CASE("users: a line is added for an unknown uid only") {
  const std::string passwd = "root:x:0:0:root:/root:/bin/sh\nbin:x:1:1::/:\n";
  CHECK(passwd_line(passwd, "slot1", 20001, 20002, "/home") == "slot1:x:20001:20002::/home:/bin/sh\n");
  CHECK(passwd_line("", "slot1", 20001, 20001, "") == "slot1:x:20001:20001::/:/bin/sh\n");
  CHECK(passwd_line(passwd + "other:x:20001:5::/:\n", "slot1", 20001, 20001, "/") == std::nullopt);
  // A gid, or a longer number, is not the uid.
  CHECK(passwd_line("a:x:5:20001:::\nb:x:200011:1:::\n", "slot1", 20001, 20001, "/").has_value());
}

TEST_CASE("users: a file without its last line end, broken lines and taken names do no harm") {
  CHECK(passwd_line("root:x:0:0:::", "s", 7, 7, "/") == "\ns:x:7:7::/:/bin/sh\n");
  CHECK(passwd_line("\n\n::\nnonsense\na:b\n", "s", 7, 7, "/") == "s:x:7:7::/:/bin/sh\n");
  CHECK(passwd_line("slot1:x:1000:1000:::\n", "slot1", 7, 7, "/") == "slot1_7:x:7:7::/:/bin/sh\n");
  CHECK(passwd_line("", "", 7, 7, "/") == "user_7:x:7:7::/:/bin/sh\n");
}

TEST_CASE("users: nothing in a name or a home can make another field or line") {
  CHECK(passwd_line("", "a:0:0\nroot2", 7, 7, "/h\nx:y") == "a_0_0_root2:x:7:7::/h_x_y:/bin/sh\n");
  CHECK(group_line("", "a\n:b", 9) == "a__b:x:9:\n");
}

TEST_CASE("users: groups have lines of their own") {
  CHECK(group_line("root:x:0:\nslot1:x:5:\n", "slot1", 20001) == "slot1_20001:x:20001:\n");
  CHECK(group_line("g:x:20001:a,b\n", "slot1", 20001) == std::nullopt);
}
