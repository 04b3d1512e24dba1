#include "podhost/store/store.hpp"

#include <doctest/doctest.h>

#include <filesystem>

#include "lib/base/file.hpp"
#include "podhost/api/watch.hpp"
#include "tests/podhost/pods.hpp"
#include "tests/temporary_folder.hpp"

using namespace glidepod::podhost;

namespace {

struct Scene {
  Scene() { REQUIRE(files.prepare()); }
  glidepod::TemporaryFolder own;  // before those that keep it
  const std::string& folder = own.path;
  PodFiles files{folder};
  std::vector<std::string> changed;
  Store store{files, 100, [this](const std::string& uid) { changed.push_back(uid); }};
};

glidepod::Result<Json> relabel(const Json& pod) {
  Json fresh = pod;
  fresh["metadata"]["labels"]["app"] = "y";
  return fresh;
}

std::string type_of(const std::string& line) {
  return line.empty() ? "" : Json::parse(line)["type"].get<std::string>();
}

}  // namespace

TEST_CASE("store: create, get, list and their errors") {
  Scene scene;
  const auto pod = scene.store.create(sample_pod());
  REQUIRE(pod);
  CHECK((**pod)["metadata"]["resourceVersion"] == "101");
  CHECK(scene.changed == std::vector<std::string>{"u-1"});
  CHECK(scene.store.get("ns", "p"));
  CHECK(glidepod::kube::ApiError::of(scene.store.get("ns", "q").error()).code == 404);
  CHECK(glidepod::kube::ApiError::of(scene.store.create(sample_pod()).error()).reason == "AlreadyExists");
  CHECK(scene.store.list().pods.size() == 1);
  CHECK(scene.store.list().version == 101);
}

TEST_CASE("store: pods and their status outlive the process") {
  Scene scene;
  REQUIRE(scene.store.create(sample_pod()));
  CHECK(scene.store.set_status("u-1", {{"phase", "Running"}}));
  const auto pods = scene.files.load();
  REQUIRE(pods.size() == 1);
  CHECK(pods[0]["status"]["phase"] == "Running");
  CHECK(pods[0]["spec"] == sample_pod()["spec"]);
  scene.store.remove("u-1");
  CHECK(scene.files.load().empty());
  CHECK_FALSE(std::filesystem::exists(scene.files.folder("u-1")));
  CHECK(scene.store.set_status("u-1", {{"phase", "Failed"}}));
  CHECK_FALSE(scene.store.find("u-1"));
}

TEST_CASE("store: a status that could not be saved is told, and saved by the next call") {
  Scene scene;
  REQUIRE(scene.store.create(sample_pod()));
  // As on a full disk, also for root.
  const std::string hindrance = scene.files.folder("u-1") + "/status.json.new";
  std::filesystem::create_directory(hindrance);
  CHECK_FALSE(scene.store.set_status("u-1", {{"phase", "Succeeded"}}));
  CHECK((*scene.store.find("u-1"))["status"]["phase"] == "Succeeded");
  const auto version = scene.store.version();
  CHECK_FALSE(scene.store.set_status("u-1", {{"phase", "Succeeded"}}));
  CHECK(scene.files.load().at(0)["status"]["phase"] == "Pending");
  std::filesystem::remove(hindrance);
  CHECK(scene.store.set_status("u-1", {{"phase", "Succeeded"}}));
  CHECK(scene.files.load().at(0)["status"]["phase"] == "Succeeded");
  CHECK(scene.store.version() == version);
}

TEST_CASE("store: a status that says the same is no event") {
  Scene scene;
  REQUIRE(scene.store.create(sample_pod()));
  const auto version = scene.store.version();
  CHECK(scene.store.set_status("u-1", {{"phase", "Pending"}}));
  CHECK(scene.store.version() == version);
}

TEST_CASE("store: a pod that cannot be written is not created") {
  Scene scene;
  std::filesystem::remove_all(scene.folder);
  const auto refused = scene.store.create(sample_pod());
  REQUIRE_FALSE(refused);
  CHECK(glidepod::kube::ApiError::of(refused.error()).code == 500);
  CHECK(scene.store.list().pods.empty());
}

TEST_CASE("store: a change that cannot be written is refused, a deletion is not") {
  Scene scene;
  REQUIRE(scene.store.create(sample_pod()));
  std::filesystem::remove_all(scene.folder);
  CHECK_FALSE(scene.store.update("ns", "p", relabel));
  CHECK((*scene.store.find("u-1"))["metadata"]["labels"]["app"] == "x");
  scene.changed.clear();
  const auto deleting = scene.store.update("ns", "p", [](const Json& pod) -> glidepod::Result<Json> {
    Json fresh = pod;
    fresh["metadata"]["deletionTimestamp"] = "2026-11-30T00:00:00Z";
    return fresh;
  });
  REQUIRE(deleting);
  CHECK((*scene.store.find("u-1"))["metadata"].contains("deletionTimestamp"));
  CHECK(scene.changed == std::vector<std::string>{"u-1"});
  CHECK_FALSE(scene.store.update("ns", "p", relabel));
}

TEST_CASE("store: a folder without a pod is litter, one with a broken pod is kept for a human") {
  Scene scene;
  std::filesystem::create_directories(scene.files.folder("litter") + "/volumes");
  std::filesystem::create_directories(scene.files.folder("broken"));
  REQUIRE(glidepod::replace_file(scene.files.folder("broken") + "/pod.json", "{", 0600));
  CHECK(scene.files.load().empty());
  CHECK_FALSE(std::filesystem::exists(scene.files.folder("litter")));
  CHECK(std::filesystem::exists(scene.files.folder("broken")));
}

TEST_CASE("store: changes since a version, until they are forgotten") {
  Scene scene;
  REQUIRE(scene.store.create(sample_pod()));
  REQUIRE(scene.store.update("ns", "p", relabel));
  CHECK(scene.store.since(100)->size() == 2);
  CHECK(scene.store.since(102)->empty());
  CHECK_FALSE(scene.store.since(99));
  for (int i = 0; i < 1100; ++i) scene.store.set_status("u-1", {{"phase", std::to_string(i)}});
  CHECK_FALSE(scene.store.since(101));
  CHECK(scene.store.since(scene.store.version() - 5)->size() == 5);
}

TEST_CASE("watch: events as a selecting watcher sees them") {
  Scene scene;
  REQUIRE(scene.store.create(sample_pod()));
  REQUIRE(scene.store.update("ns", "p", relabel));
  scene.store.remove("u-1");
  const auto events = *scene.store.since(100);
  REQUIRE(events.size() == 3);
  Selection all, labelled_x, labelled_y, elsewhere;
  labelled_x.labels = glidepod::kube::LabelSelector::parse("app=x").value();
  labelled_y.labels = glidepod::kube::LabelSelector::parse("app=y").value();
  elsewhere.name_space = "elsewhere";
  const auto types = [&](const Selection& selection) {
    std::string result;
    for (const auto& event : events) result += type_of(watch_line(event, selection)) + ",";
    return result;
  };
  CHECK(types(all) == "ADDED,MODIFIED,DELETED,");
  CHECK(types(labelled_x) == "ADDED,DELETED,,");
  CHECK(types(labelled_y) == ",ADDED,DELETED,");
  CHECK(types(elsewhere) == ",,,");
}
