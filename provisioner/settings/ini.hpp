#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.hpp"

namespace glidepod::provisioner {

// Settings files by the rules of Python's ConfigParser, which PRP's files are written for: "key = value" or
// "key: value", keys without regard to case, deeper indented lines continue a value, [DEFAULT] shows through
// every section, "%%" is a per cent sign and "%(key)s" another key's value. Beyond it: a line that ends in a
// backslash is joined with the next one, and section names have no case either.
class Ini {
 public:
  // Adds a file's text; a later file's keys win. An error names the file and the line.
  Result<void> read(std::string_view text, std::string_view name);

  // The value in the section, else in [DEFAULT], with "%" resolved; nullopt where neither has it.
  Result<std::optional<std::string>> get(std::string_view section, std::string_view key) const;
  // Every section in lower case ("default" included) with its own keys, for complaints about unknown ones.
  std::vector<std::pair<std::string, std::vector<std::string>>> keys() const;

 private:
  using Section = std::map<std::string, std::string, std::less<>>;
  const std::string* raw(std::string_view section, std::string_view key) const;
  Result<std::string> interpolate(std::string_view section, std::string_view value, int depth,
                                  int& budget) const;

  std::map<std::string, Section, std::less<>> sections_;
};

// PRP's lists "a,b" and dictionaries "key:value,key:value". Blanks around an element are dropped, empty text
// has no elements; "&colon;", "&comma;" and "&amp;" stand for the characters that would separate.
Result<std::vector<std::string>> parse_list(std::string_view text);
Result<std::vector<std::pair<std::string, std::string>>> parse_dict(std::string_view text);

}  // namespace glidepod::provisioner
