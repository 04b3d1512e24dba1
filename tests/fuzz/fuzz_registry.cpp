// What a registry may say, and an operator's file of credentials.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lib/http/url.hpp"
#include "lib/registry/access.hpp"
#include "lib/registry/document.hpp"
#include "lib/registry/location.hpp"

using namespace glidepod;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)registry::parse_manifest(text, {"amd64", {}});
  (void)registry::parse_file_manifest(text);
  (void)registry::parse_config(text);
  (void)registry::error_words(text);
  (void)registry::parse_token(text);
  const auto challenge = registry::parse_challenge(text);
  if (const auto url = http::Url::parse(challenge.realm)) (void)url->with_query({{"scope", challenge.scope}});
  static const auto base = http::Url::parse("https://reg.example/v2/x/");
  (void)base->resolve(std::string(text));
  static const auto image = registry::ImageLocation::parse("reg.example/x:1");
  (void)registry::basic_credentials(text, image.value());
  (void)registry::ImageLocation::parse(text);
  return 0;
}
