#include "lib/registry/client.hpp"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <random>
#include <utility>

#include "lib/base/file.hpp"
#include "lib/base/text.hpp"
#include "lib/kube/failure.hpp"
#include "lib/kube/http.hpp"
#include "lib/registry/access.hpp"
#include "lib/registry/location.hpp"

namespace glidepod::registry {
namespace {

constexpr Milliseconds k_attempt_timeout{15'000};
constexpr std::size_t k_longest_answer = std::size_t{4} << 20;
constexpr std::size_t k_longest_token_answer = std::size_t{128} << 10;
constexpr int k_most_redirects = 5;
constexpr int k_most_manifests = 3;  // an index of indexes is allowed, an endless chain is not
constexpr const char* k_accept =
    "Accept: application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, "
    "application/vnd.docker.distribution.manifest.list.v2+json, "
    "application/vnd.docker.distribution.manifest.v2+json";

// One question: manifest, perhaps another manifest, configuration; a token in between.
class Question : public Client::Operation {
 public:
  Question(Loop& loop, const Options& options, std::string image, SteadyTime deadline, Handler handler)
      : loop_(loop),
        options_(options),
        image_(std::move(image)),
        deadline_(deadline),
        handler_(std::move(handler)) {
    // Later, also where it is over at once: a handler must not run inside of ask().
    timer_ = loop_.after(Milliseconds(0), [this] {
      timer_ = 0;
      if (const auto begun = begin(); !begun) refuse(begun.error().message());
    });
  }
  ~Question() override { loop_.cancel(timer_); }
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;

 private:
  enum class Step : std::uint8_t { manifest, config };

  Result<void> begin() {
    auto http = kube::Http::create(loop_);
    if (!http) {
      finish(Failure{Failure::Kind::unreachable, http.error().message()});
      return {};
    }
    http_ = std::move(*http);
    location_ = TRY(ImageLocation::parse(image_));
    const bool plain = std::ranges::find(options_.insecure_registries, location_.api_host()) !=
                       options_.insecure_registries.end();
    base_ = TRY(Url::parse(
        fmt::format("{}://{}/v2/{}/", plain ? "http" : "https", location_.api_host(), location_.repository)));
    if (location_.by_digest) expected_ = Descriptor{location_.reference, 0};
    return want("manifests/" + location_.reference);
  }

  // The next document, from its own address on.
  Result<void> want(const std::string& path) {
    origin_ = TRY(Url::parse(base_->text() + path));
    attempt();
    return {};
  }

  // May the agent speak to it? Plain HTTP is for the hosts the operator has named.
  Result<void> check(const Url& url) const {
    if (url.https() || std::ranges::find(options_.insecure_registries, url.authority()) !=
                           options_.insecure_registries.end())
      return {};
    return error("the registry leads to {} without HTTPS", url.authority());
  }

  void attempt() {
    redirects_ = 0;
    get(*origin_);
  }

  void get(const Url& url) {
    here_ = url;
    asked_ = url.authority();
    kube::HttpRequest request = request_to(url);
    request.headers.emplace_back(step_ == Step::manifest ? k_accept : "Accept: */*");
    if (!authorization_.empty() && url.same_origin(*base_))
      request.headers.push_back("Authorization: " + authorization_);
    start(std::move(request), &Question::answered);
  }

  kube::HttpRequest request_to(const Url& url) const {
    kube::HttpRequest request;
    request.url = url.text();
    request.unix_socket = options_.unix_socket;
    request.headers.emplace_back("User-Agent: glidepod/" GLIDEPOD_VERSION);
    request.longest_body = k_longest_answer;
    request.wanted_headers = {"WWW-Authenticate", "Location", "Docker-Content-Digest"};
    request.accepts = [](const sockaddr& address) { return !is_metadata_address(address); };
    const auto left = std::chrono::ceil<Milliseconds>(deadline_ - std::chrono::steady_clock::now());
    request.timeout = std::clamp(left, Milliseconds(1), k_attempt_timeout);
    return request;
  }

  void start(kube::HttpRequest request, Result<void> (Question::*handle)(const kube::HttpResponse&)) {
    ++attempts_;
    call_ = http_->start(std::move(request), {{}, [this, handle](Result<kube::HttpResponse> response) {
                                                received(std::move(response), handle);
                                              }});
  }

  // What holds for every answer.
  void received(Result<kube::HttpResponse> response,
                Result<void> (Question::*handle)(const kube::HttpResponse&)) {
    if (!response) {
      const Error& why = response.error();
      if (why.code() == EMSGSIZE) return refuse("the registry's answer is too long");
      if (why.code() == EACCES)
        return refuse(fmt::format("{} has a link-local or metadata address, which is not contacted", asked_));
      return try_again(why.message(), {});
    }
    const int status = response->status;
    if (status == 408 || status == 429 || status >= 500)
      return try_again(words_of(*response), response->retry_after);
    // Last: it may end the question, and with it this.
    if (const auto handled = (this->*handle)(*response); !handled) refuse(handled.error().message());
  }

  static std::string words_of(const kube::HttpResponse& response) {
    return fmt::format("{} {}", response.status, error_words(response.body));
  }

  Result<void> answered(const kube::HttpResponse& response) {
    if (response.status == 200) return document(response);
    if (response.status == 401) return challenged(response);
    const auto location = response.headers.find("Location");
    if (response.status >= 300 && response.status < 400 && location != response.headers.end()) {
      if (++redirects_ > k_most_redirects) return error("the registry redirects without end");
      const Url next = TRY(here_->resolve(location->second));
      TRY(check(next));
      get(next);
      return {};
    }
    return error("{}", words_of(response));
  }

  Result<void> document(const kube::HttpResponse& response) {
    if (expected_) {
      TRY(verify(response.body, *expected_));
    } else if (const auto said = response.headers.find("Docker-Content-Digest");
               said != response.headers.end() && said->second.starts_with("sha256:")) {
      TRY(verify(response.body, {said->second, 0}));
    }
    if (step_ == Step::config) {
      finish(TRY(parse_config(response.body)));
      return {};
    }
    const Manifest manifest = TRY(parse_manifest(response.body, options_.platform));
    if (++manifests_ >= k_most_manifests && manifest.index)
      return error("its index leads from one to the next");
    if (!manifest.index) step_ = Step::config;
    expected_ = manifest.next;
    return want((manifest.index ? "manifests/" : "blobs/") + manifest.next.digest);
  }

  // 401 is an answer like any other from a host that was redirected to, or once credentials were shown.
  Result<void> challenged(const kube::HttpResponse& response) {
    const auto header = response.headers.find("WWW-Authenticate");
    if (challenged_ || !here_->same_origin(*base_) || header == response.headers.end())
      return error("{}", words_of(response));
    challenged_ = true;
    const Challenge challenge = parse_challenge(header->second);
    const std::string secret = credentials();
    switch (challenge.scheme) {
      case Challenge::Scheme::none:
        break;
      case Challenge::Scheme::basic:
        if (secret.empty()) break;
        authorization_ = "Basic " + secret;
        attempt();
        return {};
      case Challenge::Scheme::bearer: {
        std::vector<std::pair<std::string, std::string>> query;
        if (!challenge.service.empty()) query.emplace_back("service", challenge.service);
        query.emplace_back("scope", challenge.scope.empty()
                                        ? fmt::format("repository:{}:pull", location_.repository)
                                        : challenge.scope);
        realm_ = TRY(TRY(Url::parse(challenge.realm)).with_query(query));
        TRY(check(*realm_));
        secret_ = secret;
        ask_token();
        return {};
      }
    }
    return error("{}", words_of(response));
  }

  // A file that is missing or broken leaves what everybody may read; the registry then says what it lacks.
  std::string credentials() const {
    if (options_.credentials_file.empty()) return {};
    const auto text = read_file(options_.credentials_file, std::size_t{1} << 20);
    if (!text) return {};
    auto found = basic_credentials(text.value(), location_);
    return found ? std::move(*found) : std::string();
  }

  void ask_token() {
    asked_ = realm_->authority();
    kube::HttpRequest request = request_to(*realm_);
    request.longest_body = k_longest_token_answer;
    if (!secret_.empty()) request.headers.push_back("Authorization: Basic " + secret_);
    start(std::move(request), &Question::token_came);
  }

  Result<void> token_came(const kube::HttpResponse& response) {
    // No redirect: the credentials are for this realm, and a token must come from it.
    if (response.status != 200) return error("{}", words_of(response));
    authorization_ = "Bearer " + TRY(parse_token(response.body));
    realm_.reset();
    attempt();
    return {};
  }

  void try_again(const std::string& why, std::optional<std::chrono::seconds> retry_after) {
    kube::Failure failure;
    failure.retry_after = retry_after;
    std::minstd_rand generator(std::random_device{}());
    const Milliseconds wait =
        kube::backoff(attempts_, std::uniform_real_distribution<>(0, 1)(generator), failure);
    if (std::chrono::steady_clock::now() + wait >= deadline_)
      return finish(Failure{Failure::Kind::unreachable, in_context(why)});
    timer_ = loop_.after(wait, [this] {
      timer_ = 0;
      if (realm_)
        ask_token();
      else
        attempt();
    });
  }

  std::string in_context(std::string_view why) const {
    return one_line(fmt::format("what the image runs by itself could not be learnt: {}", why));
  }
  void refuse(const std::string& why) { finish(Failure{Failure::Kind::refused, in_context(why)}); }
  void finish(Answer answer) {
    const auto handler = std::move(handler_);
    handler(std::move(answer));  // may destroy this
  }

  Loop& loop_;
  const Options& options_;
  const std::string image_;
  const SteadyTime deadline_;
  Handler handler_;
  std::unique_ptr<kube::Http> http_;
  ImageLocation location_;
  Step step_ = Step::manifest;
  std::optional<Url> base_;    // of the repository
  std::optional<Url> origin_;  // of the document wanted
  std::optional<Url> here_;    // where it was sought last
  std::optional<Url> realm_;   // while a token is sought
  std::optional<Descriptor> expected_;
  std::string asked_;
  std::string secret_;
  std::string authorization_;
  bool challenged_ = false;
  int attempts_ = 0;
  int redirects_ = 0;
  int manifests_ = 0;
  Loop::TimerId timer_ = 0;
  std::unique_ptr<kube::Http::Call> call_;  // before http_ goes
};

}  // namespace

Client::Client(Loop& loop, Options options) : loop_(loop), options_(std::move(options)) {}

std::unique_ptr<Client::Operation> Client::ask(std::string image, SteadyTime deadline, Handler handler) {
  return std::make_unique<Question>(loop_, options_, std::move(image), deadline, std::move(handler));
}

}  // namespace glidepod::registry
