#pragma once

#include <filesystem>
#include <string>

namespace glidepod::glue::testing {

// Puts something else in the place of a path, for a while.
class Instead {
 public:
  explicit Instead(std::filesystem::path path) : path_(std::move(path)), kept_(path_.string() + ".kept") {
    had_ = std::filesystem::exists(std::filesystem::symlink_status(path_));
    if (had_) std::filesystem::rename(path_, kept_);
  }
  ~Instead() {
    std::filesystem::remove_all(path_);
    if (had_) std::filesystem::rename(kept_, path_);
  }
  Instead(Instead&&) = delete;

 private:
  std::filesystem::path path_, kept_;
  bool had_;
};

}  // namespace glidepod::glue::testing
