#include "lib/registry/repository.hpp"

#include <nlohmann/json.hpp>

#include "lib/base/file.hpp"
#include "lib/base/json.hpp"
#include "lib/base/text.hpp"
#include "lib/registry/access.hpp"
#include "lib/registry/document.hpp"

namespace glidepod::registry {
namespace {

constexpr const char* k_accept_manifest =
    "Accept: application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, "
    "application/vnd.docker.distribution.manifest.v2+json";
constexpr std::size_t k_longest_body = std::size_t{4} << 20;
constexpr std::size_t k_longest_secret_file = std::size_t{1} << 20;
constexpr Milliseconds k_patience{30'000};
constexpr Milliseconds k_longest_stream{3'600'000};
constexpr std::uint64_t k_least_rate = std::uint64_t{1} << 20;  // bytes a second of an upload

Error words_of(const http::Response& response) {
  return error("{} {}", response.status, one_line(error_words(response.body)));
}

std::string header(const http::Response& response, const char* name) {
  const auto found = response.headers.find(name);
  return found == response.headers.end() ? std::string() : found->second;
}

}  // namespace

Result<std::unique_ptr<Repository>> Repository::open(Settings settings) {
  std::unique_ptr<Repository> made(new Repository(std::move(settings)));
  made->location_ = TRY(ImageLocation::parse(made->settings_.name));
  made->base_ = TRY(http::Url::parse(fmt::format("{}://{}/v2/{}/", made->settings_.plain ? "http" : "https",
                                                 made->location_.api_host(), made->location_.repository)));
  return made;
}

http::Request Repository::request(std::string method, const http::Url& url) const {
  http::Request request;
  request.method = std::move(method);
  request.url = url.text();
  request.unix_socket = settings_.unix_socket;
  request.ca_file = settings_.ca_file;
  request.timeout = k_patience;
  request.longest_body = k_longest_body;
  request.wanted_headers = {"WWW-Authenticate", "Location", "Docker-Content-Digest"};
  return request;
}

Result<http::Url> Repository::at(const std::string& path) const {
  return http::Url::parse(base_->text() + path);
}

std::string Repository::credentials() const {
  if (settings_.credentials_file.empty()) return {};
  const auto text = read_file(settings_.credentials_file, k_longest_secret_file);
  if (!text) return {};
  auto found = basic_credentials(text.value(), location_);
  return found ? std::move(*found) : std::string();
}

// What a 401 asks for.
Result<std::string> Repository::authorization(const http::Response& refusal) {
  const Challenge challenge = parse_challenge(header(refusal, "WWW-Authenticate"));
  const std::string secret = credentials();
  if (challenge.scheme == Challenge::Scheme::basic && !secret.empty()) return "Basic " + secret;
  if (challenge.scheme != Challenge::Scheme::bearer) return words_of(refusal);
  std::vector<std::pair<std::string, std::string>> query;
  if (!challenge.service.empty()) query.emplace_back("service", challenge.service);
  query.emplace_back("scope", challenge.scope.empty()
                                  ? fmt::format("repository:{}:pull,push", location_.repository)
                                  : challenge.scope);
  const auto realm = TRY(TRY(http::Url::parse(challenge.realm)).with_query(query));
  if (!realm.https() && !settings_.plain)
    return error("the registry asks for its token at {} without HTTPS", realm.authority());
  auto ask = request("GET", realm);
  if (!secret.empty()) ask.authorization = "Basic " + secret;
  const auto answer = TRY(http::perform(std::move(ask)));
  if (answer.status != 200) return words_of(answer).in("the registry's token");
  return "Bearer " + TRY(parse_token(answer.body));
}

// Sends a request, and once more with a new token where one is asked for: those that there are may be over.
Result<http::Response> Repository::send(const http::Request& request, const http::Callbacks& callbacks) {
  const auto url = TRY(http::Url::parse(request.url));
  const bool own = url.same_origin(*base_);
  auto first = request;
  if (own) {
    const std::lock_guard lock(mutex_);
    first.authorization = authorization_;
  }
  auto answer = TRY(http::perform(std::move(first), callbacks));
  // What came by a pipe is gone.
  if (answer.status != 401 || !own || !request.file_size) return answer;
  auto fresh = TRY(authorization(answer));
  auto again = request;
  again.authorization = fresh;
  {
    const std::lock_guard lock(mutex_);
    authorization_ = std::move(fresh);
  }
  return http::perform(std::move(again), callbacks);
}

// Where an upload goes on.
Result<http::Url> Repository::place_in(const http::Response& answer) const {
  if (answer.status != 202) return words_of(answer);
  auto place = TRY(base_->resolve(header(answer, "Location")));
  if (!place.https() && !settings_.plain)
    return error("the registry takes uploads at {} without HTTPS", place.authority());
  return place;
}

Result<std::optional<std::string>> Repository::find(const std::string& reference) {
  auto ask = request("HEAD", TRY(at("manifests/" + reference)));
  ask.headers.emplace_back(k_accept_manifest);
  const auto answer = TRY(send(ask));
  if (answer.status == 404) return std::optional<std::string>();
  if (answer.status != 200) return words_of(answer);
  std::string digest = header(answer, "Docker-Content-Digest");
  if (!digest.starts_with("sha256:"))
    return error("the registry does not say which digest {} has", reference);
  return std::optional(std::move(digest));
}

Result<http::Url> Repository::new_place() {
  return place_in(TRY(send(request("POST", TRY(at("blobs/uploads/"))))));
}

Result<std::unique_ptr<Repository::Upload>> Repository::begin_upload() {
  return std::make_unique<Upload>(*this, TRY(new_place()));
}

Repository::Upload::~Upload() {
  if (!committed_) (void)repository_.send(repository_.request("DELETE", place_));
}

// As `docker push` does it: one PATCH, whose length nobody knows before its end.
Result<void> Repository::Upload::send(const std::shared_ptr<const Fd>& from,
                                      const std::function<bool()>& cancelled) {
  auto patch = repository_.request("PATCH", place_);
  patch.headers.emplace_back("Content-Type: application/octet-stream");
  patch.file = from;
  patch.file_size.reset();
  patch.timeout = k_longest_stream;
  place_ = TRY(repository_.place_in(TRY(repository_.send(patch, {.cancelled = cancelled, .data = {}}))));
  return {};
}

Result<void> Repository::Upload::commit(const std::string& digest) {
  const auto put = repository_.request("PUT", TRY(place_.with_query({{"digest", digest}})));
  const auto done = TRY(repository_.send(put));
  if (done.status != 201) return words_of(done);
  committed_ = true;
  return {};
}

Result<bool> Repository::has_blob(const std::string& digest) {
  const auto answer = TRY(send(request("HEAD", TRY(at("blobs/" + digest)))));
  switch (answer.status) {
    case 200:
    case 301:  // a registry that has its blobs elsewhere looks before it leads there
    case 302:
    case 303:
    case 307:
    case 308:
      return true;
    case 404:
      return false;
    default:
      return words_of(answer);
  }
}

Result<void> Repository::put_blob(const std::string& digest, const std::shared_ptr<const Fd>& file,
                                  std::uint64_t size) {
  const auto place = TRY(new_place());
  auto put = request("PUT", TRY(place.with_query({{"digest", digest}})));
  put.headers.emplace_back("Content-Type: application/octet-stream");
  put.file = file;
  put.file_size = size;
  put.timeout += std::chrono::seconds(size / k_least_rate);
  const auto done = TRY(send(put));
  if (done.status != 201) return words_of(done);
  return {};
}

Result<void> Repository::put_manifest(const std::string& reference, const std::string& type,
                                      const std::string& text) {
  auto put = request("PUT", TRY(at("manifests/" + reference)));
  put.headers.push_back("Content-Type: " + type);
  put.body = text;
  const auto done = TRY(send(put));
  if (done.status != 201) return words_of(done);
  return {};
}

Result<bool> Repository::remove(const std::string& digest) {
  const auto done = TRY(send(request("DELETE", TRY(at("manifests/" + digest)))));
  if (done.status == 405 || done.status == 400 || done.status == 403) return false;
  if (done.status != 202 && done.status != 200 && done.status != 404) return words_of(done);
  return true;
}

Result<std::vector<std::string>> Repository::tags(std::size_t most) {
  const auto answer = TRY(send(request("GET", TRY(at(fmt::format("tags/list?n={}", most))))));
  std::vector<std::string> result;
  if (answer.status == 404) return result;  // nothing was ever put there
  if (answer.status != 200) return words_of(answer);
  const auto json = json_from(answer.body);
  const auto& list = member(json, "tags");
  if (!list.is_array()) return result;
  for (const auto& tag : list)
    if (tag.is_string() && result.size() < most) result.push_back(tag.get<std::string>());
  return result;
}

}  // namespace glidepod::registry
