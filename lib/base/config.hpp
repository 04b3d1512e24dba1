#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "lib/base/result.hpp"

namespace glidepod {

// A program's settings: the table of its keys. The program reads its files by this table, and --help,
// `settings` and the reference page come from it. The default of a key is the value that its target has when
// the key is declared. An Error about a wrong value names the key, the value and what is allowed. The value
// of a secret is never printed.
class Config {
 public:
  using Assign =
      std::function<Result<void>(std::string_view)>;  // its Error says what is allowed, and quotes nothing

  struct Key {
    std::string section;  // empty where the program's files have none
    std::string name;
    std::string about;    // one sentence
    std::string allowed;  // goes on after "must be": "a whole number from 1 to 9"
    Assign assign;
    std::function<void()> clear = {};  // set for a key that may stand several times
    std::string default_text = {};
    std::string value = {};   // the value in force, as it was written
    std::string origin = {};  // where it comes from: FILE:LINE, or a variable; empty: it is the default
    std::string unit = {};
    std::string since = "0.1.0";  // the first version that had this key
    bool is_secret = false;

    Key& in(std::string what) { return unit = std::move(what), *this; }
    Key& from(std::string version) { return since = std::move(version), *this; }
    Key& secret() { return is_secret = true, *this; }
  };

  // Environment variables are named PREFIX and the key in capitals.
  explicit Config(std::string prefix = "") : prefix_(std::move(prefix)) {}

  // Sets the section of the keys that are declared after this call.
  void section(std::string name) { section_ = std::move(name); }

  // Each of the next functions declares a key, and where its value goes.
  Key& text(std::string name, std::string* target, std::string about);
  template <typename Int>
  Key& integer(const std::string& name, Int* target, std::int64_t least, std::int64_t most,
               const std::string& about) {
    return number(name, std::to_string(*target), least,
                  std::min<std::int64_t>(most, std::numeric_limits<Int>::max()), about,
                  [target](std::int64_t value) { *target = static_cast<Int>(value); });
  }
  // "90s", "15m", "2h", "1d", or a plain number of seconds.
  Key& duration(std::string name, std::chrono::seconds* target, std::string about);
  // A plain number of seconds.
  Key& seconds(std::string name, std::chrono::seconds* target, std::string about);
  // One of several words, each of which stands for a value of an enum or a bool.
  template <typename Value>
  Key& choice(const std::string& name, Value* target,
              std::initializer_list<std::pair<const char*, std::type_identity_t<Value>>> words,
              const std::string& about) {
    std::map<std::string, Value, std::less<>> values(words.begin(), words.end());
    std::vector<std::string> names;
    std::string chosen;
    for (const auto& [word, value] : words) {
      names.emplace_back(word);
      if (value == *target) chosen = word;
    }
    return one_of(
        name, chosen, std::move(names), about,
        [target, values = std::move(values)](std::string_view word) { *target = values.find(word)->second; });
  }
  Key& flag(const std::string& name, bool* target, const std::string& about) {
    return choice(name, target, {{"yes", true}, {"no", false}}, about);
  }
  // A key that may stand several times in a file. In the environment line ends separate its values. The
  // check's Error says what is allowed.
  Key& list(std::string name, std::vector<std::string>* target, std::string about, Assign check = {});
  // A key of any other kind. allowed: as in Key.
  Key& add(std::string name, const std::string& default_text, std::string allowed, std::string about,
           Assign assign);

  // The keys, in the order of their declaration.
  const std::deque<Key>& keys() const { return keys_; }
  std::deque<Key>& keys() { return keys_; }
  void erase(const std::function<bool(const Key&)>& which) { std::erase_if(keys_, which); }
  Key* find(std::string_view section, std::string_view name);
  // Sets a key. written: the value as the file has it; where: FILE:LINE, or empty.
  Result<void> set(Key& key, std::string_view value, std::string_view written, std::string_view where);

  // Reads a file that has no sections, with lines "key = value". The Error is that of the first wrong line.
  enum class Missing : std::uint8_t { allowed, error };
  Result<void> read_file(const std::string& path, Missing missing);
  Result<void> read_text(std::string_view text, std::string_view name);
  // All problems of the text, each in one line with its place and what to do.
  std::vector<std::string> problems(std::string_view text, std::string_view name);
  // Reads an environment: KEY=VALUE strings with nullptr at the end. Unknown names with the prefix are left
  // alone, since Kubernetes puts many of its own into a container.
  Result<void> read_environment(const char* const* environment);

  // The key of the section whose name is most like this one; empty: no name is like it.
  std::string nearest(std::string_view section, std::string_view name) const;

  // For --help: a line for each key, with its meaning and default.
  std::string describe() const;
  // For `settings`: each key with the value in force, its meaning, its default, and where the value comes
  // from. names: only these keys; empty: all. An unknown name is an Error.
  Result<std::string> in_force(const std::vector<std::string>& names = {}) const;
  // For the reference page: a table for each section, without the values in force.
  std::string markdown() const;

 private:
  Key& number(std::string name, const std::string& default_text, std::int64_t least, std::int64_t most,
              std::string about, std::function<void(std::int64_t)> take);
  Key& one_of(std::string name, const std::string& chosen, std::vector<std::string> words, std::string about,
              std::function<void(std::string_view)> take);

  std::string prefix_, section_;
  std::deque<Key> keys_;  // a deque, so that the Key& that declarations return stay valid
};

}  // namespace glidepod
