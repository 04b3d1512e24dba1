#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace glidepod::provisioner {

// A key of a settings file where it stands, or, with no key, a section where it begins.
struct Entry {
  std::string section, key;  // in lower case
  std::string value;         // its lines joined, "%" not yet resolved
  std::string where;         // FILE:LINE
};

// All that stands in the text, in order, by the rules of Ini. problems: gets a line for each that means
// nothing, with its place and what to do; never what stands there, which may be a piece of a secret.
std::vector<Entry> entries(std::string_view text, std::string_view name, std::vector<std::string>& problems);

}  // namespace glidepod::provisioner
