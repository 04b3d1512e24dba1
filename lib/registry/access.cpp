#include "lib/registry/access.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/base/json.hpp"
#include "lib/base/text.hpp"

namespace glidepod::registry {
namespace {

using Json = nlohmann::json;

constexpr std::size_t k_longest_secret = std::size_t{64} << 10;

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

bool same_word(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

// Whether the text may stand in a header.
bool printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
}

// Reads a header value from its beginning. After its end, all results are empty.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}
  bool done() const { return rest_.empty(); }
  void skip(std::string_view characters) {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(characters), rest_.size()));
  }
  bool take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::string_view until(std::string_view characters) {
    const auto result = rest_.substr(0, rest_.find_first_of(characters));
    rest_.remove_prefix(result.size());
    return result;
  }
  // A value, quoted or not.
  std::string value() {
    if (!take('"')) return std::string(until(", \t"));
    std::string result;
    while (!rest_.empty() && !take('"')) {
      if (rest_.front() == '\\' && rest_.size() > 1) rest_.remove_prefix(1);
      result += rest_.front();
      rest_.remove_prefix(1);
    }
    return result;
  }

 private:
  std::string_view rest_;
};

// The host, or host and path, that a key of "auths" stands for.
std::string_view meant_by(std::string_view key) {
  for (const std::string_view scheme : {"https://", "http://"})
    if (key.starts_with(scheme)) key.remove_prefix(scheme.size());
  while (key.ends_with('/')) key.remove_suffix(1);
  for (const std::string_view version : {"/v1", "/v2"})
    if (key.ends_with(version)) key.remove_suffix(version.size());
  return key == "index.docker.io" || key == "registry-1.docker.io" ? "docker.io" : key;
}

std::string base64(std::string_view text) {
  std::string result(4 * ((text.size() + 2) / 3) + 1, '\0');
  const int length =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(result.data()),
                      reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  result.resize(static_cast<std::size_t>(length));
  return result;
}

}  // namespace

Challenge parse_challenge(std::string_view header) {
  Challenge result;
  Challenge* current = nullptr;  // the result, while its own parameters are read
  Reader reader(header);
  while (reader.skip(", \t"), !reader.done()) {
    const std::string_view word = reader.until("=, \t\"");
    if (word.empty()) {  // no known part begins so
      (void)reader.value();
      reader.take('=');
      continue;
    }
    reader.skip(" \t");
    if (!reader.take('=')) {
      const auto scheme = same_word(word, "bearer")  ? Challenge::Scheme::bearer
                          : same_word(word, "basic") ? Challenge::Scheme::basic
                                                     : Challenge::Scheme::none;
      current = scheme > result.scheme ? &result : nullptr;
      if (current) result = {scheme, {}, {}, {}};
      continue;
    }
    reader.skip(" \t");
    std::string value = reader.value();
    if (!current) continue;
    if (same_word(word, "realm"))
      result.realm = std::move(value);
    else if (same_word(word, "service"))
      result.service = std::move(value);
    else if (same_word(word, "scope"))
      result.scope = std::move(value);
  }
  return result;
}

Result<std::string> basic_credentials(std::string_view config, const ImageLocation& image) {
  const Json json = json_from(config);
  if (!json.is_object()) return error("not a docker config.json");
  const auto auths = json.find("auths");
  if (auths == json.end()) return std::string();
  if (!auths->is_object()) return error("auths is not an object");
  const std::string name = image.host + "/" + image.repository;
  std::size_t longest = 0;
  std::string result;
  for (const auto& [key, entry] : auths->items()) {
    const std::string_view meant = meant_by(key);
    const bool fits = name.starts_with(meant) && (name.size() == meant.size() || name[meant.size()] == '/');
    if (!fits || meant.size() < longest || meant.empty() || !entry.is_object()) continue;
    std::string secret = text_of(entry, "auth");
    const std::string user = text_of(entry, "username");
    if (secret.empty() && !user.empty() && user.size() < k_longest_secret)
      secret = base64(user + ":" + text_of(entry, "password").substr(0, k_longest_secret));
    if (secret.empty()) continue;
    if (!printable(secret)) return error("auths: the secret of {} is malformed", one_line(key, 200));
    longest = meant.size();
    result = std::move(secret);
  }
  return result;
}

Result<std::string> parse_token(std::string_view answer) {
  const Json json = json_from(answer);
  if (!json.is_object()) return error("the answer is no JSON object");
  std::string token = text_of(json, "token");
  if (token.empty()) token = text_of(json, "access_token");
  if (token.empty()) return error("the answer has no token");
  if (token.size() > k_longest_secret || !printable(token)) return error("the token is malformed");
  return token;
}

}  // namespace glidepod::registry
