#include <doctest/doctest.h>

#include "pilot-agent/hold_job/cedar.hpp"

using namespace glidepod;
using namespace glidepod::cedar;
using namespace std::string_literals;

TEST_CASE("cedar: numbers, strings and ads look as HTCondor's network layer has them") {
  CHECK(Message().number(34).packet() == "\1\0\0\0\x8\0\0\0\0\0\0\0\x22"s);
  CHECK(Message().number(-1).packet() == "\1\0\0\0\x8\xff\xff\xff\xff\xff\xff\xff\xff"s);
  CHECK(Message().text("ab").packet() == "\1\0\0\0\3ab\0"s);
  // One attribute, then the two empty strings that once were types.
  CHECK(Message().ad({{"Command", "1500"}}).packet() == "\1\0\0\0\x19\0\0\0\0\0\0\0\1Command = 1500\0\0\0"s);
}

TEST_CASE("cedar: what was sent is read again") {
  const std::string packet = Message().text("a").number(-7).ad({{"A", "1"}, {"B", "\"x = y\""}}).packet();
  Reader reader(packet.substr(5));
  CHECK(reader.text().value() == "a");
  CHECK(reader.number().value() == -7);
  const auto ad = reader.ad();
  REQUIRE(ad);
  CHECK(ad.value() == std::map<std::string, std::string>{{"A", "1"}, {"B", "\"x = y\""}});
}

TEST_CASE("cedar: a message that is too short is an error") {
  CHECK(!Reader("\0\0\0"s).number());
  CHECK(!Reader("no end").text());
  CHECK(!Reader("\0\0\0\0\0\0\0\2A = 1\0"s).ad());
}

TEST_CASE("cedar: a daemon's address, as its address file has it") {
  const auto address = parse_address("<10.1.2.3:4567?addrs=10.1.2.3-4567&alias=pilot>");
  REQUIRE(address);
  CHECK(address.value().host == "10.1.2.3");
  CHECK(address.value().port == 4567);
  CHECK(parse_address("<[fd00::1]:9618>").value().host == "fd00::1");
  for (const auto* wrong :
       {"", "<>", "10.1.2.3:4567", "<10.1.2.3>", "<10.1.2.3:0>", "<:1>", "<[]:1>", "<a:99999>"})
    CHECK(!parse_address(wrong));
}

TEST_CASE("cedar: root makes no folder but one that the method FS can name") {
  const Address starter{"10.1.2.3", 4567};
  for (const auto* right :
       {"/tmp/FS_XXXg1sDv2", "/tmp/FS_a", "/tmp/FS_012345", "/tmp/FS_10.1.2.3_4567_XXXCz67it"}) {
    CAPTURE(right);
    const auto folder = proof_folder(right, starter);
    REQUIRE(folder);
    CHECK(folder->path == right);
    CHECK(folder->added.empty());
  }
  for (const auto* wrong : {"",
                            "/",
                            "/tmp",
                            "/tmp/",
                            "/tmp/FS_",
                            "/tmp/FS_a/b",
                            "/tmp/FS_../x",
                            "/tmp/FS_a/../../etc/x",
                            "/tmp/FS_a b",
                            "/tmp/FS_a.b",
                            "/tmp/fs_a",
                            "/etc/condor/config.d/99",
                            "tmp/FS_a",
                            "//tmp/FS_a",
                            "/tmp/FS_REMOTE_h_1_a",
                            "/var/tmp/FS_a",
                            "/glidepod/run/FS_a",
                            "/tmp/FS_10.1.2.3_4567_a/b",
                            "/tmp/FS_10.1.2.3_4567_a_/../x",
                            "/tmp/FS_10.1.2.3_4567__",
                            "/tmp/FS_10.1.2.3_4567_a_b",
                            "/tmp/FS_10.1.2.3_4567_a__",
                            "/tmp/FS_10.1.2.3_0_a_",
                            "/tmp/FS_10.1.2.3_99999_a_",
                            "/tmp/FS_h_4567_a_",
                            "/tmp/FS_.._4567_a_"}) {
    CAPTURE(wrong);
    CHECK_FALSE(proof_folder(wrong, starter));
  }
  CHECK_FALSE(proof_folder("/tmp/FS_a\0b"s, starter));
  CHECK_FALSE(proof_folder("/tmp/FS_" + std::string(65, 'a'), starter));
}

TEST_CASE("cedar: the folder of one daemon proves nothing to another") {
  // Who has the port of a starter that has ended passes on what a daemon at another port asks for.
  const auto passed_on = proof_folder("/tmp/FS_10.1.2.3_9618_XXXCz67it_", {"10.1.2.3", 4567});
  REQUIRE(passed_on);
  CHECK(passed_on->path == "/tmp/FS_10.1.2.3_9618_XXXCz67it_10.1.2.3:4567");
  CHECK(passed_on->added == "10.1.2.3:4567");
  CHECK_FALSE(proof_folder("/tmp/FS_10.1.2.3_9618_XXXCz67it", {"10.1.2.3", 4567}));
  CHECK(proof_folder("/tmp/FS_fd00::1_4567_a_", {"fd00::1", 4567})->added == "[fd00::1]:4567");
}
