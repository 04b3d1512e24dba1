// Images that somebody wrote to do harm, each as a whole file.
#include <archive.h>
#include <archive_entry.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>

#include "lib/base/child.hpp"
#include "lib/base/file.hpp"
#include "store/layer.hpp"
#include "store/sif.hpp"
#include "tests/store/image_writer.hpp"
#include "tests/temporary_folder.hpp"

using namespace glidepod;
using namespace glidepod::store;
using namespace glidepod::store::written;

namespace {

struct Written {
  Result<Layer> layer = error("nothing yet");
  std::string bytes;
};

Written layer_of(const Fd& file, const Limits& limits = {}) {
  Written result;
  result.layer = write_layers(file, limits, [&result](std::string_view bytes) -> Result<void> {
    result.bytes += bytes;
    return {};
  });
  return result;
}

std::string fault_of(const std::string& bytes, const Limits& limits = {}) {
  const auto written = layer_of(in_memory(bytes), limits);
  if (!written.layer) CHECK(written.layer.error().fact<BadImage>() != nullptr);
  return written.layer ? "" : written.layer.error().message();
}

bool runs(std::vector<std::string> argv) {
  const Fd null = open_file("/dev/null", O_RDWR).value();
  auto child = Child::spawn(
      {.argv = std::move(argv), .stdin_fd = null.get(), .stdout_fd = null.get(), .stderr_fd = null.get()});
  if (!child) return false;
  const auto ended = child->wait();
  return ended && ended->status.success();
}

}  // namespace

TEST_CASE("attack: content that swells beyond what a file of its size may have is refused") {
  const auto bomb = a_file("");
  bomb->said_size = std::uint64_t{8} << 20;  // one hole
  const auto image = Squashfs::of(a_folder({{"f", bomb}}));
  Limits limits;
  limits.free_content = std::uint64_t{1} << 20;
  CHECK(fault_of(image, limits).find("more than a file of its size may have") != std::string::npos);
  limits.free_content = std::uint64_t{8} << 20;
  CHECK(fault_of(image, limits).empty());
}

TEST_CASE("attack: a SIF that is its own partition, or whose table is its partition, is no image") {
  const auto inner = Squashfs::of(a_folder({{"f", a_file("x")}}));
  Sif self;
  self.offset = 0;
  CHECK_FALSE(fault_of(self.around(inner)).empty());
  Sif table;
  table.table = 1024;  // where the partition is
  CHECK_FALSE(fault_of(table.around(inner)).empty());
  Sif in_sif;
  CHECK_FALSE(fault_of(in_sif.around(Sif{}.around(inner))).empty());
}

TEST_CASE("attack: cut off at every place it is refused, or is what it was") {
  const auto whole = Sif{}.around(
      Squashfs::of(a_folder({{"a", a_file(std::string(5000, 'a'))}, {"b", a_folder({{"c", a_link("a")}})}})));
  const auto right = layer_of(in_memory(whole));
  REQUIRE(right.layer);
  for (std::size_t size = 0; size < whole.size(); size += 7) {
    const auto cut = layer_of(in_memory(whole.substr(0, size)));
    CAPTURE(size);
    if (cut.layer) CHECK(cut.bytes == right.bytes);
    if (!cut.layer) CHECK(cut.layer.error().fact<BadImage>() != nullptr);
  }
}

TEST_CASE("attack: attributes that a file system obeys are not in the layer, and many are refused") {
  const TemporaryFolder folder;
  const std::string root = folder.path + "/root", image = folder.path + "/image";
  std::filesystem::create_directory(root);
  REQUIRE(replace_file(root + "/f", "x", 0644, Durable::no));
  bool set = true;
  for (const char* name : {"user.kept", "user.overlay.opaque", "user.fuseoverlayfs.opaque",
                           "user.containers.override_stat", "trusted.overlay.opaque"})
    set = set && ::setxattr((root + "/f").c_str(), name, "y", 1, 0) == 0;
  if (!set || !runs({"/usr/bin/mksquashfs", root, image, "-quiet", "-no-progress"})) {
    MESSAGE("skipped: this needs root, a file system with attributes, and mksquashfs");
    return;
  }
  const Fd file = open_file(image, O_RDONLY).value();
  Limits small;
  small.attributes = 20;
  const auto too_many = layer_of(file, small);
  REQUIRE_FALSE(too_many.layer);
  CHECK(too_many.layer.error().message() == "the image has a file with more than 20 bytes of attributes");
  const auto written = layer_of(file);
  REQUIRE(written.layer);
  archive* reader = archive_read_new();
  archive_read_support_filter_zstd(reader);
  archive_read_support_format_tar(reader);
  REQUIRE(archive_read_open_memory(reader, written.bytes.data(), written.bytes.size()) == ARCHIVE_OK);
  archive_entry* entry = nullptr;
  std::string names;
  while (archive_read_next_header(reader, &entry) == ARCHIVE_OK) {
    archive_entry_xattr_reset(entry);
    const char* name = nullptr;
    const void* value = nullptr;
    std::size_t size = 0;
    while (archive_entry_xattr_next(entry, &name, &value, &size) == ARCHIVE_OK)
      names += std::string(name) + " ";
  }
  archive_read_free(reader);
  CHECK(names == "user.kept ");
}
