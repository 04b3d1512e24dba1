#include "lib/base/file_watch.hpp"

#include <doctest/doctest.h>

#include <filesystem>

#include "lib/base/file.hpp"
#include "tests/temporary_folder.hpp"

using namespace glidepod;

namespace {

struct Scene {
  TemporaryFolder own;
  const std::string& folder = own.path;
  Loop loop = Loop::create().value();
  int changes = 0;
  std::unique_ptr<FileWatch> watch;

  Scene() {
    watch = FileWatch::create(loop, [this] { ++changes; }).value();
  }
  void put(const std::string& name, const std::string& text) const {
    REQUIRE(replace_file(folder + "/" + name, text, 0644).ok());
  }
  bool told() {
    const int before = changes;
    for (int i = 0; i < 1000 && changes == before; ++i) REQUIRE(loop.run_once(Milliseconds(2)).ok());
    return changes == before + 1;
  }
};

}  // namespace

TEST_CASE("file watch: a file that is replaced, and one by way of a link as Kubernetes does it") {
  Scene scene;
  namespace fs = std::filesystem;
  fs::create_directory(scene.folder + "/one");
  fs::create_directory(scene.folder + "/two");
  scene.put("one/conf", "a = 1\n");
  scene.put("two/conf", "a = 2\n");
  fs::create_directory_symlink("one", scene.folder + "/..data");
  fs::create_symlink("..data/conf", scene.folder + "/conf");
  const auto file = scene.folder + "/conf";
  REQUIRE(scene.watch->set({file}).ok());
  REQUIRE(read_file(file).value() == "a = 1\n");
  fs::create_directory_symlink("two", scene.folder + "/..data_tmp");
  fs::rename(scene.folder + "/..data_tmp", scene.folder + "/..data");
  CHECK(scene.told());
  CHECK(read_file(file).value() == "a = 2\n");
  scene.put("other", "x");
  CHECK(scene.told());
}

TEST_CASE("file watch: other files from now on, and folders that are not there") {
  Scene scene;
  std::filesystem::create_directory(scene.folder + "/sub");
  REQUIRE(scene.watch->set({scene.folder + "/conf"}).ok());
  CHECK(scene.watch->set({scene.folder + "/sub/conf", scene.folder + "/none/conf"})
            .error()
            .message()
            .find("none") != std::string::npos);
  scene.put("conf", "x");
  scene.put("sub/conf", "x");
  CHECK(scene.told());
  CHECK(scene.changes == 1);
}
