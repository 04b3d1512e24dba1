// A folder of its own for a test, which goes with it.
#pragma once

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

namespace glidepod {

struct TemporaryFolder {
  const std::string path = made();

  TemporaryFolder() = default;
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }

 private:
  static std::string made() {
    std::string name = (std::filesystem::temp_directory_path() / "glidepod-test-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    return name;
  }
};

}  // namespace glidepod
