#pragma once

#include <sys/socket.h>

#include <string>
#include <string_view>

#include "lib/base/result.hpp"

namespace glidepod::registry {

// Where an image is, by its name as a pod has it.
struct ImageLocation {
  std::string host;        // as the name says it, with the port if there is one: "docker.io", "[::1]:5000"
  std::string repository;  // "library/alpine"
  std::string reference;   // a tag, or the digest if there is one
  bool by_digest = false;

  // Reads a name; Docker's rules fill in the missing parts. An Error is the user's fault.
  static Result<ImageLocation> parse(std::string_view image);
  // Where the registry answers: Docker Hub does at another host than the one it is named by.
  std::string api_host() const;
};

// Link-local and the clouds' metadata addresses, also where IPv6 wraps the IPv4 one. No registry is there.
bool is_metadata_address(const sockaddr& address);

}  // namespace glidepod::registry
