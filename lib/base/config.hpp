#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"

namespace glidepod {

// A program's settings: lines "key = value" of a file, then the environment's PREFIX_KEY, which wins. Every
// setting has a default; an unknown key or a bad value is an error that names the key, the value and what is
// allowed.
class Config {
 public:
  Config(std::string environment_prefix) : prefix_(std::move(environment_prefix)) {}

  // Each of these names a setting and where its value goes; *target holds the default.
  void text(std::string key, std::string* target, std::string help);
  void integer(std::string key, std::int64_t* target, std::int64_t least, std::int64_t most,
               std::string help);
  // "90s", "15m", "2h", or a plain number of seconds.
  void duration(std::string key, std::chrono::seconds* target, std::string help);
  // The value must be one of the words; *target gets its index.
  void choice(std::string key, int* target, std::vector<std::string> words, std::string help);
  // May stand several times in the file; the environment separates them by line ends.
  void list(std::string key, std::vector<std::string>* target, std::string help);

  // A file that is missing is no error unless it must exist.
  enum class Missing : std::uint8_t { allowed, error };
  Result<void> read_file(const std::string& path, Missing missing);
  Result<void> read_text(std::string_view text, std::string_view name);
  // The environment as KEY=VALUE strings, nullptr at its end. Unknown PREFIX_ names are left alone:
  // Kubernetes puts many of its own into a container.
  Result<void> read_environment(const char* const* environment);

  bool has(std::string_view key) const;

  // For --help: a line a setting with its default and meaning.
  std::string describe() const;

 private:
  struct Setting {
    std::string key, default_text, help;
    std::function<Result<void>(std::string_view)> set;
    std::function<void()> clear;  // lists only: forgets the values of an earlier source
  };
  void add(Setting setting) { settings_.push_back(std::move(setting)); }
  Result<void> set(std::string_view key, std::string_view value, std::string_view where);

  std::string prefix_;
  std::vector<Setting> settings_;
};

}  // namespace glidepod
