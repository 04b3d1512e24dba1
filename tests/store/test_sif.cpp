#include "store/sif.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "tests/store/image_writer.hpp"

using namespace glidepod;
using namespace glidepod::store;
using written::Sif;

namespace {

const std::string k_squashfs = "hsqs" + std::string(200, 'x');

Result<Root> root_of(const std::string& bytes) {
  return find_root(written::in_memory(bytes), bytes.size());
}
std::string fault_of(const std::string& bytes) {
  const auto root = root_of(bytes);
  return root ? "" : root.error().message();
}

}  // namespace

TEST_CASE("sif: the primary system partition, and the machine it is for") {
  const auto root = root_of(Sif{}.around(k_squashfs));
  REQUIRE(root);
  CHECK(root->offset == 1024);
  CHECK(root->size == k_squashfs.size());
  CHECK(root->architecture == "amd64");
  CHECK(root_of(Sif{.architecture = "04"}.around(k_squashfs))->architecture == "arm64");
  CHECK(root_of(Sif{.architecture = "77"}.around(k_squashfs))->architecture == "");
}

TEST_CASE("sif: a squashfs without a SIF around it, as older Singularity wrote it") {
  CHECK(root_of(k_squashfs)->offset == 0);
  const std::string launcher = "#!/usr/bin/env run-singularity\n";
  const auto root = root_of(launcher + k_squashfs);
  REQUIRE(root);
  CHECK(root->offset == launcher.size());
  CHECK(root->size == k_squashfs.size());
  CHECK(fault_of("#!/bin/sh\n" + k_squashfs) == "the file is no image: it is neither a SIF nor a squashfs");
}

TEST_CASE("sif: what is no image is refused in a sentence") {
  for (const std::string& bytes : {std::string(), std::string("hsq"), std::string("#!"),
                                   std::string(5000, '\0'), Sif{}.around(k_squashfs).substr(0, 127)})
    CHECK(fault_of(bytes) == "the file is no image: it is neither a SIF nor a squashfs");
  for (const int kind : {5, 6})
    CHECK(fault_of(Sif{.file_system = kind}.around(k_squashfs)) ==
          "the image is encrypted, and its key is not known here: build it without --encrypt");
  CHECK(fault_of(Sif{.file_system = 2}.around(k_squashfs)) ==
        "the image's file system is ext3, not squashfs: build it again with a current Apptainer");
  CHECK(fault_of(Sif{.file_system = 99}.around(k_squashfs)).find("not known") != std::string::npos);
  const std::string none = "the image file has no system partition, so there is nothing to run in it";
  CHECK(fault_of(Sif{.partition = 3}.around(k_squashfs)) == none);
  CHECK(fault_of(Sif{.type = 0x4001}.around(k_squashfs)) == none);
  CHECK(fault_of(Sif{.used = 0}.around(k_squashfs)) == none);
  CHECK(fault_of(Sif{.descriptors = 0}.around(k_squashfs)) == none);
  CHECK(fault_of(Sif{.type = 0x400a}.around(k_squashfs)).find("OCI-SIF") != std::string::npos);
}

TEST_CASE("sif: numbers that lead out of the file are refused") {
  constexpr auto k_most = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t number : {std::uint64_t{2000}, std::uint64_t{1} << 63, k_most - 1}) {
    CAPTURE(number);
    CHECK(fault_of(Sif{.descriptors = number}.around(k_squashfs)).find("damaged") != std::string::npos);
    CHECK(fault_of(Sif{.table = number}.around(k_squashfs)).find("damaged") != std::string::npos);
    CHECK(fault_of(Sif{.size = number}.around(k_squashfs)).find("cut off") != std::string::npos);
    CHECK_FALSE(root_of(Sif{.offset = number}.around(k_squashfs)));
  }
  CHECK(fault_of(Sif{.size = k_squashfs.size() + 1}.around(k_squashfs)).find("cut off") != std::string::npos);
  // So many that their bytes, counted in 64 bits, are one.
  CHECK(fault_of(Sif{.descriptors = 10374322735470841849ULL}.around(k_squashfs)).find("damaged") !=
        std::string::npos);
}

TEST_CASE("sif: a file that becomes shorter while it is read is refused") {
  const auto bytes = Sif{.descriptors = 100}.around(k_squashfs);
  const auto root = find_root(written::in_memory(bytes), 1'000'000);
  REQUIRE_FALSE(root);
  CHECK(root.error().message() == "the image file is damaged: its table of descriptors is cut off");
}
