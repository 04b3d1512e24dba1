#include "lib/registry/location.hpp"

#include <curl/curl.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "lib/base/text.hpp"
#include "lib/kube/image_reference.hpp"

namespace glidepod::registry {
namespace {

struct FreeUrl {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
struct FreeText {
  void operator()(char* text) const { curl_free(text); }
};
using UrlHandle = std::unique_ptr<CURLU, FreeUrl>;

std::string part_of(CURLU* url, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return {};
  const std::unique_ptr<char, FreeText> owner(text);
  return text;
}

Result<std::string> whole(CURLU* url) {
  std::string text = part_of(url, CURLUPART_URL);
  if (text.empty()) return error("not a URL");
  return text;
}

bool is_host(std::string_view text) {
  const auto all = [](std::string_view part, std::string_view more) {
    return !part.empty() && std::ranges::all_of(part, [more](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
             more.find(c) != std::string_view::npos;
    });
  };
  const auto close = text.starts_with('[') ? text.find(']') : std::string_view::npos;
  const auto colon = text.find(':', close == std::string_view::npos ? 0 : close);
  if (colon != std::string_view::npos) {
    const auto port = parse_integer(text.substr(colon + 1));
    if (!port || port.value() < 1 || port.value() > 65535) return false;
    text = text.substr(0, colon);
  }
  if (close == std::string_view::npos) return all(text, ".-");
  return close == text.size() - 1 && all(text.substr(1, close - 1), ":.");
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
  if (!is_host(location.host)) return error("{} is not the name of a registry", location.host);
  return location;
}

std::string ImageLocation::api_host() const {
  return host == "docker.io" ? "registry-1.docker.io" : host;
}

Result<Url> Url::parse(const std::string& text) {
  const UrlHandle handle(curl_url());
  if (!handle) return error("no memory");
  if (curl_url_set(handle.get(), CURLUPART_URL, text.c_str(), CURLU_DISALLOW_USER) != CURLUE_OK)
    return error("'{}' is not a URL", one_line(text, 200));
  Url url;
  const std::string scheme = part_of(handle.get(), CURLUPART_SCHEME);
  if (scheme != "https" && scheme != "http")
    return error("'{}' is neither https nor http", one_line(text, 200));
  url.https_ = scheme == "https";
  url.authority_ = part_of(handle.get(), CURLUPART_HOST);
  std::ranges::transform(url.authority_, url.authority_.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  const std::string port = part_of(handle.get(), CURLUPART_PORT, CURLU_NO_DEFAULT_PORT);
  if (!port.empty()) url.authority_ += ":" + port;
  if (!is_host(url.authority_)) return error("'{}' names no host", one_line(text, 200));
  // What is sent to no server, and would be in the way of a query.
  curl_url_set(handle.get(), CURLUPART_FRAGMENT, nullptr, 0);
  url.text_ = TRY(whole(handle.get()));
  return url;
}

Result<Url> Url::resolve(const std::string& location) const {
  const UrlHandle handle(curl_url());
  if (!handle) return error("no memory");
  if (curl_url_set(handle.get(), CURLUPART_URL, text_.c_str(), 0) != CURLUE_OK ||
      curl_url_set(handle.get(), CURLUPART_URL, location.c_str(), CURLU_DISALLOW_USER) != CURLUE_OK)
    return error("'{}' is not a URL", one_line(location, 200));
  return parse(TRY(whole(handle.get())));
}

Result<Url> Url::with_query(const std::vector<std::pair<std::string, std::string>>& parameters) const {
  const UrlHandle handle(curl_url());
  if (!handle) return error("no memory");
  if (curl_url_set(handle.get(), CURLUPART_URL, text_.c_str(), 0) != CURLUE_OK)
    return error("'{}' is not a URL", text_);
  for (const auto& [name, value] : parameters) {
    const std::string parameter = fmt::format("{}={}", name, value);
    if (curl_url_set(handle.get(), CURLUPART_QUERY, parameter.c_str(), CURLU_APPENDQUERY | CURLU_URLENCODE) !=
        CURLUE_OK)
      return error("the query {} cannot be asked", one_line(parameter, 200));
  }
  return parse(TRY(whole(handle.get())));
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
