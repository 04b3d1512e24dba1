#include "lib/registry/location.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "lib/http/url.hpp"
#include "lib/kube/image_reference.hpp"

namespace glidepod::registry {
namespace {

// tests/lint/network says whose these are.
bool is_metadata4(const std::uint8_t* bytes) {
  constexpr std::array<std::array<std::uint8_t, 4>, 5> k_of_clouds = {
      {{168, 63, 129, 16}, {100, 100, 100, 200}, {100, 96, 0, 96}, {100, 80, 80, 80}, {192, 0, 0, 192}}};
  return (bytes[0] == 169 && bytes[1] == 254) ||  // 169.254.0.0/16
         std::ranges::any_of(k_of_clouds,
                             [&](const auto& one) { return std::equal(one.begin(), one.end(), bytes); });
}

bool is_metadata6(const std::array<std::uint8_t, 16>& bytes) {
  using Groups = std::array<std::uint16_t, 8>;
  constexpr std::array<Groups, 7> k_of_clouds = {{{0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254},
                                                  {0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23},
                                                  {0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254},
                                                  {0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe},
                                                  {0xfd00, 0x100, 0, 0, 0, 0, 0x100, 0x200},
                                                  {0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42},
                                                  {0xfd00, 0xa9fe, 0xa9fe, 0, 0, 0, 0, 1}}};
  Groups groups{};
  for (std::size_t i = 0; i < groups.size(); ++i)
    groups[i] = static_cast<std::uint16_t>(bytes[2 * i] << 8 | bytes[2 * i + 1]);
  return (groups[0] & 0xffc0) == 0xfe80 ||  // fe80::/10
         std::ranges::find(k_of_clouds, groups) != k_of_clouds.end();
}

}  // namespace

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
  if (is_metadata6(bytes)) return true;
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
