#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lib/condor/classad.hpp"

namespace glidepod::condor {

// One token of a ClassAd expression.
struct Token {
  enum class Type : std::uint8_t { end, invalid, number, string, name, symbol };
  Type type = Type::end;
  std::string text;  // a name or symbol as written, a string decoded, what is wrong with an invalid one
  Value number;
  bool special = false;  // a string with escapes that are more than a character taken as it is
};

// Takes the first token off the text.
Token next_token(std::string_view& text);

std::string lower_case(std::string_view text);

}  // namespace glidepod::condor
