#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "lib/condor/classad.hpp"

namespace glidepod::condor {

// Splits the output of a -json command into ads as it comes. Never more than one ad is in memory. Anything
// that is not an ad is reported and skipped; the ads around it stay whole.
class AdStream {
 public:
  AdStream(std::function<void(Ad)> on_ad, std::function<void(std::string)> on_bad)
      : on_ad_(std::move(on_ad)), on_bad_(std::move(on_bad)) {}

  void feed(std::string_view piece);
  // An error if the text ended within an ad.
  Result<void> end();

 private:
  void close_ad();

  std::function<void(Ad)> on_ad_;
  std::function<void(std::string)> on_bad_;
  std::string ad_;
  int depth_ = 0;
  bool in_string_ = false;
  bool after_backslash_ = false;
  bool too_long_ = false;
  char last_ = 0;
};

// An ad from one JSON object as condor_q and condor_status write it ("\/Expr(...)\/" is an expression).
Result<Ad> ad_from_json(std::string_view text);

}  // namespace glidepod::condor
