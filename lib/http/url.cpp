#include "lib/http/url.hpp"

#include <curl/curl.h>

#include <algorithm>
#include <memory>

#include "lib/base/text.hpp"

namespace glidepod::http {
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

}  // namespace

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

std::string url_encoded(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-._~").find(c) != std::string_view::npos;
    result += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return result;
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
  url.authority_ = lower_case(part_of(handle.get(), CURLUPART_HOST));
  const std::string port = part_of(handle.get(), CURLUPART_PORT, CURLU_NO_DEFAULT_PORT);
  if (!port.empty()) url.authority_ += ":" + port;
  if (!is_host(url.authority_)) return error("'{}' names no host", one_line(text, 200));
  // Removes the fragment: it is sent to no server, and a query could not follow it.
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
    const std::string parameter = fmt::format("{}={}", url_encoded(name), url_encoded(value));
    if (curl_url_set(handle.get(), CURLUPART_QUERY, parameter.c_str(), CURLU_APPENDQUERY) != CURLUE_OK)
      return error("the query {} cannot be asked", one_line(parameter, 200));
  }
  return parse(TRY(whole(handle.get())));
}

}  // namespace glidepod::http
