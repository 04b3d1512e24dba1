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
  std::string text;  // a name or symbol as written; a string decoded; what is wrong with an invalid token
  Value number;
  bool special = false;  // a string has escapes that do not just stand for the character they precede
};

// Takes the first token off the text.
Token next_token(std::string_view& text);

}  // namespace glidepod::condor
