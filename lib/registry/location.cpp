#include "lib/registry/location.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "lib/http/url.hpp"
#include "lib/kube/image_reference.hpp"

namespace glidepod::registry {
Result<ImageLocation> ImageLocation::parse(std::string_view image) {
  const auto reference = TRY(kube::ImageReference::parse(image));
  const std::string full = reference.full_repository();
  const auto slash = full.find('/');
  ImageLocation location;
  location.host = full.substr(0, slash);
  location.repository = full.substr(slash + 1);
  location.by_digest = !reference.digest.empty();
  location.reference = location.by_digest       ? reference.digest
                       : !reference.tag.empty() ? reference.tag
                                                : "latest";
  if (!http::is_host(location.host)) return error("{} is not the name of a registry", location.host);
  return location;
}

std::string ImageLocation::api_host() const {
  return host == "docker.io" ? "registry-1.docker.io" : host;
}

bool is_metadata_address(const sockaddr& address) {
  const auto is_metadata4 = [](const std::uint8_t* bytes) {  // 169.254.0.0/16
    return bytes[0] == 169 && bytes[1] == 254;
  };
  if (address.sa_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &address, sizeof in);
    std::array<std::uint8_t, 4> bytes{};
    std::memcpy(bytes.data(), &in.sin_addr, bytes.size());
    return is_metadata4(bytes.data());
  }
  if (address.sa_family != AF_INET6) return false;
  sockaddr_in6 in{};
  std::memcpy(&in, &address, sizeof in);
  std::array<std::uint8_t, 16> bytes{};
  std::memcpy(bytes.data(), &in.sin6_addr, bytes.size());
  if (bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80) return true;  // fe80::/10
  constexpr std::array<std::uint8_t, 16> k_of_a_cloud = {0xfd, 0x00, 0x0e, 0xc2, 0, 0, 0, 0,
                                                         0,    0,    0,    0,    0, 0, 2, 0x54};
  if (bytes == k_of_a_cloud) return true;  // fd00:ec2::254
  // ::a.b.c.d, ::ffff:a.b.c.d and 64:ff9b::a.b.c.d reach the IPv4 address.
  constexpr std::array<std::uint8_t, 12> k_compatible = {};
  constexpr std::array<std::uint8_t, 12> k_mapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  constexpr std::array<std::uint8_t, 12> k_translated = {0x00, 0x64, 0xff, 0x9b};
  const bool wraps = std::ranges::any_of(
      std::array{k_compatible, k_mapped, k_translated},
      [&](const auto& prefix) { return std::equal(prefix.begin(), prefix.end(), bytes.begin()); });
  if (wraps) return is_metadata4(bytes.data() + 12);
  return bytes[0] == 0x20 && bytes[1] == 0x02 && is_metadata4(bytes.data() + 2);  // 2002:aabb:ccdd::/48
}

}  // namespace glidepod::registry
