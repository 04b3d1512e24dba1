#pragma once

#include <string>
#include <string_view>

#include "lib/base/result.hpp"
#include "lib/registry/location.hpp"

namespace glidepod::registry {

// What a registry wants, as the WWW-Authenticate header of its 401 says.
struct Challenge {
  enum class Scheme : std::uint8_t { none, basic, bearer };
  Scheme scheme = Scheme::none;  // the better one of those offered that are known
  std::string realm;             // bearer: the URL that gives out tokens
  std::string service;
  std::string scope;
};
Challenge parse_challenge(std::string_view header);

// The value of "Authorization: Basic" for a registry, from the text of a docker config.json (as in a secret
// of type kubernetes.io/dockerconfigjson); empty if it has none. Keys are registries, also with https://
// before them and /v1/ or /v2/ behind, or registries with the beginning of a repository, of which the longest
// counts.
Result<std::string> basic_credentials(std::string_view config, const ImageLocation& image);

// The token in the answer of a realm.
Result<std::string> parse_token(std::string_view answer);

}  // namespace glidepod::registry
