#include "provisioner/service/owners.hpp"

#include <doctest/doctest.h>

#include <filesystem>

#include "lib/base/file.hpp"
#include "lib/base/text.hpp"
#include "provisioner/service/report.hpp"

using namespace glidepod;
using namespace glidepod::provisioner;

namespace {

struct Scene {
  PolicySettings settings;
  std::string file = std::filesystem::temp_directory_path() / ("owner-key." + random_hex(32));

  Scene() { settings.hide_owners = true; }
  ~Scene() { std::filesystem::remove(file); }
  std::string name(const std::string& owner, const std::string& key = "one key") const {
    return owner_naming(settings, key).value()(owner);
  }
};

}  // namespace

TEST_CASE("owners: their own names, unless that is not wanted") {
  CHECK(!owner_naming({}, "key").value());
}

TEST_CASE("owners: a pseudonym is the same as long as the key is") {
  const Scene scene;
  const auto alice = scene.name("alice");
  CHECK(alice.starts_with("owner-"));
  CHECK(alice.size() == 14);
  CHECK(scene.name("alice") == alice);
  CHECK(scene.name("bob") != alice);
  CHECK(scene.name("alice", "another key") != alice);
  CHECK(scene.name("").empty());
  CHECK(random_hex(32) != random_hex(32));
  const auto naming = owner_naming(scene.settings, "one key").value();
  for (int i = 0; i < 20'000; ++i) naming(std::to_string(i));
  CHECK(naming("alice") == alice);
}

TEST_CASE("owners: a key file makes them the same after a start, and must hold a secret") {
  Scene scene;
  scene.settings.owner_key_file = scene.file;
  CHECK(!owner_naming(scene.settings, "key"));
  REQUIRE(replace_file(scene.file, "short", 0600));
  CHECK(owner_naming(scene.settings, "key").error().message() ==
        scene.file + " has less than 16 bytes, which are too few for a secret");
  REQUIRE(replace_file(scene.file, "0123456789abcdef", 0600));
  CHECK(scene.name("alice", "this") == scene.name("alice", "that"));
  // HMAC-SHA-256 by another program: printf alice | openssl dgst -sha256 -hmac 0123456789abcdef
  CHECK(scene.name("alice") == "owner-fdbf8b1c");
}

TEST_CASE("owners: a report has no name but the pseudonym") {
  Observation seen;
  seen.pods.push_back({.name = "p", .group = {}, .image = "", .state = PodState::unregistered, .since = {}});
  seen.slots.push_back({"p", true, "alice", "slot1_1@p"});
  Plan plan;
  plan.decisions.resize(1);
  plan.decisions[0].demand.owners["alice"] = 3;
  const auto naming = owner_naming(Scene().settings, "key").value();
  CHECK(report(seen, plan, nullptr).dump().find("alice") != std::string::npos);
  const auto hidden = report(seen, plan, nullptr, naming);
  CHECK(hidden.dump().find("alice") == std::string::npos);
  CHECK(hidden["pods"][0]["jobs"][0]["owner"] == naming("alice"));
  CHECK(hidden["decisions"][0]["owners"][naming("alice")] == 3);
}
