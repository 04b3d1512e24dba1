#pragma once

#include <sys/socket.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/result.hpp"

namespace glidepod::registry {

// Where an image is, by its name as a pod has it.
struct ImageLocation {
  std::string host;        // as the name says it, with the port if there is one: "docker.io", "[::1]:5000"
  std::string repository;  // "library/alpine"
  std::string reference;   // a tag, or the digest if there is one
  bool by_digest = false;

  // Docker's rules fill in what is missing. An Error is the user's fault.
  static Result<ImageLocation> parse(std::string_view image);
  // Where the registry answers: Docker Hub does at another host than the one it is named by.
  std::string api_host() const;
};

// An absolute http or https URL, without a user in it.
class Url {
 public:
  static Result<Url> parse(const std::string& text);
  // Another one as a Location header gives it, which may be relative to this.
  Result<Url> resolve(const std::string& location) const;
  // The same with more parameters at the end of its query.
  Result<Url> with_query(const std::vector<std::pair<std::string, std::string>>& parameters) const;

  const std::string& text() const { return text_; }
  bool https() const { return https_; }
  // HOST or HOST:PORT where the port is not the scheme's own.
  const std::string& authority() const { return authority_; }
  bool same_origin(const Url& other) const {
    return https_ == other.https_ && authority_ == other.authority_;
  }

 private:
  std::string text_, authority_;
  bool https_ = false;
};

// Link-local and the clouds' metadata addresses, also where IPv6 wraps the IPv4 one. No registry is there.
bool is_metadata_address(const sockaddr& address);

}  // namespace glidepod::registry
