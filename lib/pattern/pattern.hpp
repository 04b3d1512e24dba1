#pragma once

#include <memory>
#include <string_view>

#include "lib/base/result.hpp"

namespace glidepod {

// A regular expression of Perl's kind (PCRE2), over bytes. Compiling and matching have fixed limits for time,
// memory and stack, whatever the pattern and the text are.
class Pattern {
 public:
  // An Error if the text is no regular expression, or is too large.
  static Result<Pattern> compile(std::string_view text);

  // Whether the whole text matches. An Error if that would take too much work.
  Result<bool> matches(std::string_view text) const { return match(text, Extent::whole); }
  // As matches(), but false if that would take too much work.
  bool surely_matches(std::string_view text) const {
    const auto result = matches(text);
    return result && result.value();
  }
  // Whether some part of the text matches. An Error if that would take too much work.
  Result<bool> found_in(std::string_view text) const { return match(text, Extent::part); }

 private:
  enum class Extent { whole, part };
  struct Code;
  explicit Pattern(std::shared_ptr<const Code> code) : code_(std::move(code)) {}
  Result<bool> match(std::string_view text, Extent extent) const;

  std::shared_ptr<const Code> code_;
};

}  // namespace glidepod
