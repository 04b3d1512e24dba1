#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/result.hpp"

namespace glidepod::http {

// Whether the text is HOST or HOST:PORT, with a name or an address as HOST.
bool is_host(std::string_view text);

// The text, encoded as a part of a path or query.
std::string url_encoded(std::string_view text);

// An absolute http or https URL, without a user in it.
class Url {
 public:
  static Result<Url> parse(const std::string& text);
  // The URL that a Location header means; it may be relative to this URL.
  Result<Url> resolve(const std::string& location) const;
  // This URL with more parameters at the end of its query.
  Result<Url> with_query(const std::vector<std::pair<std::string, std::string>>& parameters) const;

  const std::string& text() const { return text_; }
  bool https() const { return https_; }
  // HOST, or HOST:PORT if the port is not the scheme's own.
  const std::string& authority() const { return authority_; }
  bool same_origin(const Url& other) const {
    return https_ == other.https_ && authority_ == other.authority_;
  }

 private:
  std::string text_, authority_;
  bool https_ = false;
};

}  // namespace glidepod::http
