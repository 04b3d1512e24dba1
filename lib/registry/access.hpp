#pragma once

#include <string>
#include <string_view>

#include "lib/base/result.hpp"
#include "lib/registry/location.hpp"

namespace glidepod::registry {

// What a registry wants, by the WWW-Authenticate header of its 401.
struct Challenge {
  enum class Scheme : std::uint8_t { none, basic, bearer };
  Scheme scheme = Scheme::none;  // the best one of those that are offered and known
  std::string realm;             // bearer: the URL that gives out tokens
  std::string service;
  std::string scope;
};
Challenge parse_challenge(std::string_view header);

// The value of "Authorization: Basic" for a registry; empty: there is none. config: the text of a docker
// config.json, as in a secret of type kubernetes.io/dockerconfigjson. Its keys are registries, perhaps with
// https:// before and /v1/ or /v2/ after the name, or registries with the beginning of a repository. Of
// several that match, the longest counts.
Result<std::string> basic_credentials(std::string_view config, const ImageLocation& image);

// The token in a realm's answer.
Result<std::string> parse_token(std::string_view answer);

}  // namespace glidepod::registry
