#include "pilot-agent/settings.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "lib/base/file.hpp"

using namespace glidepod;
using namespace glidepod::agent;

TEST_CASE("settings: payload containers by name or number") {
  using Names = std::vector<std::string>;
  Settings settings;
  CHECK(settings.container_names().empty());
  settings.payload_containers = "2";
  CHECK(settings.container_names() == Names{"payload-0", "payload-1"});
  settings.payload_containers = "a  b-1 ";
  CHECK(settings.container_names() == Names{"a", "b-1"});
}

TEST_CASE("settings: the command's words, or none") {
  Settings settings;
  CHECK(settings.command_words() == std::vector<std::string>{"/usr/sbin/condor_master", "-f"});
  settings.command = "none";
  CHECK(settings.command_words().empty());
}

TEST_CASE("settings: the command gets our environment and the number of containers") {
  using Strings = std::vector<std::string>;
  const char* own[] = {"PATH=/bin", "GLIDEPOD_POD_NAME=pilot-1", "GLIDEPOD_PAYLOAD_CONTAINERS=a b", nullptr};
  CHECK(command_environment(own, 2) ==
        Strings{"PATH=/bin", "GLIDEPOD_POD_NAME=pilot-1", "GLIDEPOD_PAYLOAD_CONTAINERS=2"});
  CHECK(command_environment(own, 0) == Strings{"PATH=/bin", "GLIDEPOD_POD_NAME=pilot-1"});
}

TEST_CASE("settings: every key is described, and mistakes are named") {
  Settings settings;
  Config config("GLIDEPOD_");
  settings.declare(config);
  CHECK(config.describe().find("bind_deadline") != std::string::npos);
  CHECK(config.read_text("reuse = never\nbind_deadline = 5m\n", "x").ok());
  CHECK(settings.policy.reuse == Policy::Reuse::never);
  CHECK(settings.policy.bind_deadline == std::chrono::seconds(300));
  CHECK_FALSE(config.read_text("bind_dedline = 5m\n", "x").ok());
  settings.image_rules = {"nonsense"};
  CHECK_FALSE(settings.rules().ok());
}

TEST_CASE("settings: HTCondor has the pod's grace but for the time to end, or what is set") {
  Settings settings;
  CHECK(settings.command_grace(std::chrono::seconds(120)) == std::chrono::seconds(110));
  CHECK(settings.command_grace(std::chrono::seconds(5)) == std::chrono::seconds(2));
  settings.shutdown_grace = std::chrono::seconds(20);
  CHECK(settings.command_grace(std::chrono::seconds(120)) == std::chrono::seconds(20));
}

TEST_CASE("settings: the reference page is what the table says") {
  const auto page = read_file(AGENT_SETTINGS_PAGE);
  REQUIRE(page.ok());
  CHECK(settings_page() == *page);  // else: pilot-agent settings --markdown > docs/settings-agent.md
}

TEST_CASE("settings: a wrong image rule is told with its line") {
  Settings settings;
  Config config("GLIDEPOD_");
  settings.declare(config);
  CHECK(
      config.problems("\nimage_rule = nonsense\n", "f").at(0).starts_with("f:2: image_rule = 'nonsense': "));
}

TEST_CASE("settings: how many containers are spare, by warm or its old name, wherever these stand") {
  const auto spares = [](std::string_view text, std::vector<const char*> environment = {}) {
    Settings settings;
    Config config("GLIDEPOD_");
    settings.declare(config);
    environment.push_back(nullptr);
    REQUIRE(config.read_text(text, "x").ok());
    REQUIRE(config.read_environment(environment.data()).ok());
    return fmt::format("{}{}", settings.policy.spares, settings.by_old_name() ? " by its old name" : "");
  };
  CHECK(spares("") == "0");
  CHECK(spares("warm = auto\n") == "0");
  CHECK(spares("warm = off\n") == "0");
  CHECK(spares("warm = 3\n") == "3");
  CHECK(spares("warm = 3\n", {"GLIDEPOD_WARM=1"}) == "1");
  CHECK(spares("", {"GLIDEPOD_SPARES=2"}) == "2 by its old name");
  CHECK(spares("spares = 2\n", {"GLIDEPOD_WARM=auto"}) == "2 by its old name");
  CHECK(spares("spares = 2\nwarm = 1\n") == "1");
  CHECK(spares("warm = 1\nspares = 2\n") == "1");
  CHECK(spares("", {"GLIDEPOD_SPARES=2", "GLIDEPOD_WARM=off"}) == "0");
}

TEST_CASE("settings: what warm and its old name may be") {
  Settings settings;
  Config config("GLIDEPOD_");
  settings.declare(config);
  for (const auto* value : {"-1", "1001", "many", "AUTO", ""}) {
    CAPTURE(value);
    CHECK(config.problems(fmt::format("warm = {}\n", value), "f") ==
          std::vector{
              fmt::format("f:1: warm = '{}': must be auto, off, or a whole number from 0 to 1000", value)});
    CHECK(config.problems(fmt::format("spares = {}\n", value), "f") ==
          std::vector{fmt::format("f:1: spares = '{}': must be a whole number from 0 to 1000", value)});
  }
  CHECK(config.problems("spares = auto\nwarm = 1000\nspares = 0\n", "f").size() == 1);
}
