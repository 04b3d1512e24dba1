#include "provisioner/service/tokens.hpp"

#include <openssl/evp.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <system_error>

#include "lib/base/file.hpp"
#include "lib/base/json.hpp"
#include "lib/base/log.hpp"
#include "lib/base/text.hpp"
#include "lib/base/time.hpp"

namespace glidepod::provisioner {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t k_longest_token = 65536;  // of a token's file

// Plain files, and links to them as Kubernetes has them; no folders, and nothing that begins with a dot.
Result<std::set<std::string>> files_of(const std::string& folder) {
  std::set<std::string> result;
  std::error_code failure;
  for (fs::directory_iterator at(folder, failure), end; !failure && at != end; at.increment(failure)) {
    const auto name = at->path().filename().string();
    std::error_code gone;
    if (!name.starts_with('.') && fs::is_regular_file(at->path(), gone)) result.insert(name);
  }
  if (failure) return Error(folder, failure.value());
  return result;
}

// HEADER.CLAIMS.SIGNATURE, each in the base64 for URLs.
std::optional<std::chrono::sys_seconds> end_of_token(std::string_view token) {
  const auto parts = split(trim(token), '.');
  if (parts.size() != 3) return std::nullopt;
  std::string claims = parts[1];
  std::ranges::replace(claims, '-', '+');
  std::ranges::replace(claims, '_', '/');
  claims.resize((claims.size() + 3) / 4 * 4, '=');
  std::string text(claims.size(), '\0');
  const int length =
      EVP_DecodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(claims.data()), static_cast<int>(claims.size()));
  if (length < 0) return std::nullopt;
  text.resize(static_cast<std::size_t>(length));
  text.resize(text.rfind('}') + 1);  // what the padding stood for
  const auto json = json_from(text);
  if (!json.is_object() || !json.contains("exp") || !json["exp"].is_number_integer()) return std::nullopt;
  return std::chrono::sys_seconds(std::chrono::seconds(json["exp"].get<std::int64_t>()));
}

}  // namespace

TokenEnds ends_of_tokens(const std::string& folder, std::chrono::sys_seconds now) {
  TokenEnds result;
  const auto files = files_of(folder);
  if (!files) return result;
  for (const auto& name : files.value()) {
    const auto content = read_file(fmt::format("{}/{}", folder, name), k_longest_token);
    if (!content) continue;
    for (const auto& line : split(content.value(), '\n')) {
      const auto end = end_of_token(line);
      if (!end) continue;
      result.first = std::min(*end, result.first.value_or(*end));
      if (*end <= now)
        result.problems.push_back(
            fmt::format("the token {} has expired at {}: its Secret needs another", name, time_text(*end)));
      else if (*end <= now + k_token_notice)
        result.problems.push_back(fmt::format("the token {} expires at {}: its Secret needs another before",
                                              name, time_text(*end)));
    }
  }
  return result;
}

Result<void> copy_tokens(const std::string& from, const std::string& to) {
  const auto wanted = TRY(files_of(from));
  if (::mkdir(to.c_str(), 0700) != 0 && errno != EEXIST) return Error::system("mkdir {}", to);
  Result<void> result;
  for (const auto& name : wanted) {
    const auto path = fmt::format("{}/{}", to, name);
    const auto content = read_file(fmt::format("{}/{}", from, name), k_longest_token);
    if (!content) {
      result = content.error();
      continue;
    }
    if (const auto there = read_file(path, k_longest_token); there && there.value() == content.value())
      continue;
    if (const auto written = replace_file(path, content.value(), 0600, Durable::no); !written)
      result = written.error();
    else
      spdlog::info("event=token file={}", glidepod::quoted(name));
  }
  for (const auto& name : TRY(files_of(to))) {
    if (wanted.contains(name)) continue;
    std::error_code failure;
    fs::remove(fs::path(to) / name, failure);
    spdlog::info("event=token_removed file={}", glidepod::quoted(name));
  }
  return result;
}

}  // namespace glidepod::provisioner
