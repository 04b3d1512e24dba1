#include "lib/registry/client.hpp"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "lib/base/file.hpp"
#include "lib/base/text.hpp"
#include "lib/http/exchange.hpp"
#include "lib/registry/access.hpp"
#include "lib/registry/digest.hpp"
#include "lib/registry/location.hpp"

namespace glidepod::registry {
namespace {

constexpr std::size_t k_longest_answer = std::size_t{4} << 20;
constexpr std::size_t k_longest_token_answer = std::size_t{128} << 10;
constexpr int k_most_redirects = 5;
constexpr int k_most_manifests = 3;  // an index of indexes is allowed, an endless chain is not
constexpr const char* k_accept =
    "Accept: application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, "
    "application/vnd.docker.distribution.manifest.list.v2+json, "
    "application/vnd.docker.distribution.manifest.v2+json";

using Answer = std::variant<ImageCommand, Descriptor, std::monostate>;

// What is wanted of an image. Of a file, its blob and where it goes.
struct Goal {
  enum class What : std::uint8_t { command, file, content };
  What what = What::command;
  Descriptor blob = {};
  const Fd* to = nullptr;
};

// Bytes that come, on their way to a file.
class Arrival {
 public:
  Arrival(const Fd& to, const Descriptor& blob) : to_(to), blob_(blob) {}
  void begin() {
    digest_ = {};
    size_ = 0;
    failed_ = {};
    if (::ftruncate(to_.get(), 0) != 0 || ::lseek(to_.get(), 0, SEEK_SET) != 0)
      failed_ = Error::system("empty a file");
  }
  // After an Error nothing more is wanted.
  Result<void> add(std::string_view bytes) {
    if (failed_) return *failed_;
    size_ += bytes.size();
    if (size_ > blob_.size)
      return error("the registry sends more than the {} bytes of {}", blob_.size, blob_.digest);
    digest_.add(bytes);
    return write_all(to_, bytes).in("write the file");
  }
  Result<void> end() {
    if (failed_) return *failed_;
    if (size_ != blob_.size)
      return error("the registry sent {} bytes, not the {} bytes of {}", size_, blob_.size, blob_.digest);
    const auto digest = digest_.text();
    return digest == blob_.digest ? Result<void>()
                                  : error("the registry sent the content {}, not {}", digest, blob_.digest);
  }

 private:
  const Fd& to_;
  const Descriptor& blob_;
  Digest digest_;
  std::uint64_t size_ = 0;
  std::optional<Error> failed_;
};

// One question: it asks for a manifest, perhaps another manifest, and the configuration; in between perhaps
// for a token. Or for a file's blob alone.
class Question : public Client::Operation {
 public:
  using Handler = std::function<void(Result<Answer>)>;
  Question(Loop& loop, const Options& options, std::string image, Goal goal, SteadyTime deadline,
           Handler handler)
      : loop_(loop),
        options_(options),
        image_(std::move(image)),
        goal_(std::move(goal)),
        deadline_(deadline),
        handler_(std::move(handler)) {
    // The handler is called from the loop even if the question is over at once, since it must not run inside
    // ask().
    timer_ = loop_.after(Milliseconds(0), [this] {
      timer_ = 0;
      if (const auto begun = begin(); !begun) fail(begun.error());
    });
  }
  ~Question() override { loop_.cancel(timer_); }
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;

 private:
  enum class Step : std::uint8_t { manifest, config, content };

  Result<void> begin() {
    auto transport = http::Transport::create(loop_);
    if (!transport) {
      finish(transport.error().with(Unknown::unreachable));
      return {};
    }
    transport_ = std::move(*transport);
    location_ = TRY(ImageLocation::parse(image_));
    const bool plain = std::ranges::find(options_.insecure_registries, location_.api_host()) !=
                       options_.insecure_registries.end();
    base_ = TRY(http::Url::parse(
        fmt::format("{}://{}/v2/{}/", plain ? "http" : "https", location_.api_host(), location_.repository)));
    if (goal_.what == Goal::What::content) {
      step_ = Step::content;
      arrival_.emplace(*goal_.to, goal_.blob);
      return want("blobs/" + goal_.blob.digest);
    }
    if (location_.by_digest) expected_ = Descriptor{location_.reference, 0};
    return want("manifests/" + location_.reference);
  }

  // Asks for the next document, beginning at its own address.
  Result<void> want(const std::string& path) {
    origin_ = TRY(http::Url::parse(base_->text() + path));
    attempt();
    return {};
  }

  // Whether this URL may be contacted. Plain HTTP is only for the hosts that the operator has named.
  Result<void> check(const http::Url& url) const {
    if (url.https() || std::ranges::find(options_.insecure_registries, url.authority()) !=
                           options_.insecure_registries.end())
      return {};
    return error("the registry redirects to {} without HTTPS", url.authority());
  }

  void attempt() {
    exchange(
        [this] {
          http::Request request = request_to(*origin_);
          request.headers.emplace_back(step_ == Step::manifest ? k_accept : "Accept: */*");
          request.authorization = authorization_;
          // Each attempt may be told once what it lacks: what did before may have ended meanwhile.
          challenged_ = std::exchange(answering_, false);
          if (arrival_) arrival_->begin();
          return request;
        },
        k_most_redirects, &Question::answered);
  }

  http::Request request_to(const http::Url& url) const {
    http::Request request;
    request.url = url.text();
    request.unix_socket = options_.unix_socket;
    request.longest_body = k_longest_answer;
    request.wanted_headers = {"WWW-Authenticate", "Docker-Content-Digest"};
    request.accepts = [](const sockaddr& address) { return !is_metadata_address(address); };
    return request;
  }

  using Handle = Result<void> (Question::*)(const http::Response&, const http::Url& from);
  void exchange(std::function<http::Request()> request, int redirects, Handle handle) {
    http::Plan plan;
    plan.request = std::move(request);
    plan.deadline = deadline_;
    plan.redirects = redirects;
    plan.may_follow = [this](const http::Url& next) { return check(next); };
    // These are final answers of the registry, also errors: each step knows what they mean.
    if (arrival_ && handle == &Question::answered) {  // a token is not the file
      plan.data = [this](std::string_view bytes) {
        const auto added = arrival_->add(bytes);
        if (added) return;
        call_.reset();  // no more of it
        fail(added.error());
      };
      plan.attempt_limit = std::chrono::ceil<Milliseconds>(deadline_ - std::chrono::steady_clock::now());
    }
    plan.judge = [](const http::Response& response) -> std::optional<http::Failure> {
      const int status = response.status;
      if (status != 408 && status != 429 && status < 500) return std::nullopt;
      return http::Failure{
          http::Failure::Kind::status, status, {}, error_words(response.body), response.retry_after};
    };
    plan.hopeless = [](const http::Failure& failure) {
      return failure.lost.why == http::Lost::Why::too_long || failure.lost.why == http::Lost::Why::address;
    };
    call_ = std::make_unique<http::Exchange>(
        *transport_, std::move(plan),
        [this, handle](const Result<http::Response>& response, const std::string& url) {
          received(response, url, handle);
        });
  }

  // The checks that every answer must pass.
  void received(const Result<http::Response>& response, const std::string& url, Handle handle) {
    const auto from = http::Url::parse(url);
    if (!response) {
      const auto* failure = response.error().fact<http::Failure>();
      if (!failure) return fail(response.error());
      if (failure->lost.why == http::Lost::Why::too_long)
        return fail(error("the registry's answer is too long"));
      if (failure->lost.why == http::Lost::Why::address)
        return fail(error("{} has a link-local or metadata address, which is not contacted",
                          from ? from->authority() : url));
      const std::string status = failure->status == 0 ? "" : fmt::format("{} ", failure->status);
      return finish(Error(in_context(status + failure->message)).with(Unknown::unreachable));
    }
    if (!from) return fail(from.error());
    // The last statement, since it may end the question and destroy this object.
    if (const auto handled = (this->*handle)(*response, *from); !handled) fail(handled.error());
  }

  static std::string words_of(const http::Response& response) {
    return fmt::format("{} {}", response.status, error_words(response.body));
  }

  Result<void> answered(const http::Response& response, const http::Url& from) {
    if (response.status == 200) return document(response);
    if (response.status == 401) return challenged(response, from);
    return error("{}", words_of(response));
  }

  Result<void> document(const http::Response& response) {
    if (step_ == Step::content) {
      TRY(arrival_->end());
      finish(Answer(std::monostate()));
      return {};
    }
    if (expected_) {
      TRY(verify(response.body, *expected_));
    } else if (const auto said = response.headers.find("Docker-Content-Digest");
               said != response.headers.end() && said->second.starts_with("sha256:")) {
      TRY(verify(response.body, {said->second, 0}));
    }
    if (step_ == Step::config) {
      finish(Answer(TRY(parse_config(response.body))));
      return {};
    }
    if (goal_.what == Goal::What::file) {
      finish(Answer(TRY(parse_file_manifest(response.body))));
      return {};
    }
    const Manifest manifest = TRY(parse_manifest(response.body, options_.platform));
    if (++manifests_ >= k_most_manifests && manifest.index) return error("its index leads to another index");
    if (!manifest.index) step_ = Step::config;
    expected_ = manifest.next;
    return want((manifest.index ? "manifests/" : "blobs/") + manifest.next.digest);
  }

  // If a redirect led to this host, or this answered a challenge already, 401 is an answer like any other.
  Result<void> challenged(const http::Response& response, const http::Url& from) {
    const auto header = response.headers.find("WWW-Authenticate");
    if (challenged_ || !from.same_origin(*base_) || header == response.headers.end())
      return error("{}", words_of(response));
    answering_ = true;
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
        realm_ = TRY(TRY(http::Url::parse(challenge.realm)).with_query(query));
        TRY(check(*realm_));
        secret_ = secret;
        ask_token();
        return {};
      }
    }
    return error("{}", words_of(response));
  }

  // If the file cannot be read, only public images can be asked for. The registry then says what is missing.
  std::string credentials() const {
    if (options_.credentials_file.empty()) return {};
    const auto text = read_file(options_.credentials_file, std::size_t{1} << 20);
    if (!text) return {};
    auto found = basic_credentials(text.value(), location_);
    return found ? std::move(*found) : std::string();
  }

  void ask_token() {
    // No redirect is followed: the credentials are for this realm, and the token must come from it.
    exchange(
        [this] {
          http::Request request = request_to(*realm_);
          request.longest_body = k_longest_token_answer;
          if (!secret_.empty()) request.authorization = "Basic " + secret_;
          return request;
        },
        0, &Question::token_came);
  }

  Result<void> token_came(const http::Response& response, const http::Url&) {
    if (response.status != 200) return error("{}", words_of(response));
    authorization_ = "Bearer " + TRY(parse_token(response.body));
    attempt();
    return {};
  }

  std::string in_context(std::string_view why) const {
    const auto* what = goal_.what == Goal::What::command
                           ? "the image's own command (ENTRYPOINT, CMD) could not be read"
                           : "the image file could not be fetched";
    return one_line(fmt::format("{}: {}", what, why));
  }
  // Trouble of this machine, such as a full disk, is no word of the registry's.
  void fail(const Error& why) {
    const auto what = why.code() == 0 ? Unknown::refused : Unknown::unreachable;
    finish(Error(in_context(why.message())).with(what));
  }
  void finish(Result<Answer> answer) {
    const auto handler = std::move(handler_);
    handler(std::move(answer));  // may destroy this
  }

  Loop& loop_;
  const Options& options_;
  const std::string image_;
  const Goal goal_;
  const SteadyTime deadline_;
  Handler handler_;
  std::unique_ptr<http::Transport> transport_;
  ImageLocation location_;
  Step step_ = Step::manifest;
  std::optional<http::Url> base_;    // of the repository
  std::optional<http::Url> origin_;  // of the document wanted
  std::optional<http::Url> realm_;   // that gives out tokens
  std::optional<Descriptor> expected_;
  std::string secret_;
  std::string authorization_;
  bool answering_ = false, challenged_ = false;  // the next attempt answers a challenge, this one does
  int manifests_ = 0;
  std::optional<Arrival> arrival_;  // of a file's content
  Loop::TimerId timer_ = 0;
  std::unique_ptr<http::Operation> call_;  // before transport_ goes
};

}  // namespace

bool refused(const Error& error) {
  const auto* why = error.fact<Unknown>();
  return why != nullptr && *why == Unknown::refused;
}

Client::Client(Loop& loop, Options options) : loop_(loop), options_(std::move(options)) {}

std::unique_ptr<Client::Operation> Client::ask(std::string image, SteadyTime deadline, Handler handler) {
  return std::make_unique<Question>(
      loop_, options_, std::move(image), Goal{}, deadline,
      [handler = std::move(handler)](Result<Answer> answer) {
        handler(answer ? Result<ImageCommand>(std::get<ImageCommand>(std::move(*answer))) : answer.error());
      });
}

std::unique_ptr<Client::Operation> Client::find_file(std::string image, SteadyTime deadline,
                                                     FileHandler handler) {
  return std::make_unique<Question>(
      loop_, options_, std::move(image), Goal{Goal::What::file}, deadline,
      [handler = std::move(handler)](Result<Answer> answer) {
        handler(answer ? Result<Descriptor>(std::get<Descriptor>(std::move(*answer))) : answer.error());
      });
}

std::unique_ptr<Client::Operation> Client::fetch_file(std::string image, const Descriptor& blob, const Fd& to,
                                                      SteadyTime deadline, ContentHandler handler) {
  return std::make_unique<Question>(loop_, options_, std::move(image), Goal{Goal::What::content, blob, &to},
                                    deadline, [handler = std::move(handler)](const Result<Answer>& answer) {
                                      handler(answer ? Result<void>() : answer.error());
                                    });
}

}  // namespace glidepod::registry
