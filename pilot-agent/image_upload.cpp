#include "pilot-agent/image_upload.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "lib/base/file.hpp"
#include "lib/base/json.hpp"
#include "lib/base/text.hpp"
#include "lib/http/exchange.hpp"
#include "lib/registry/digest.hpp"

namespace glidepod::agent {

struct HashedImage {
  std::string key;  // 64 hexadecimal digits
  std::uint64_t size = 0;
};

namespace {

constexpr std::size_t k_read_at_a_time = std::size_t{1} << 20;
constexpr std::size_t k_longest_answer = std::size_t{64} << 10;
constexpr std::size_t k_longest_token = std::size_t{64} << 10;
constexpr std::size_t k_longest_owner = 100;
constexpr std::string_view k_users = "user";

Result<HashedImage> hash_of(const Fd& file, const std::atomic<bool>& dropped) {
  registry::Digest digest;
  HashedImage result;
  std::vector<char> buffer(k_read_at_a_time);
  while (!dropped) {
    const auto got = ::pread(file.get(), buffer.data(), buffer.size(), static_cast<off_t>(result.size));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error::system("read the image file");
    if (got == 0) break;
    digest.add({buffer.data(), static_cast<std::size_t>(got)});
    result.size += static_cast<std::uint64_t>(got);
  }
  const std::string text = digest.text();
  result.key = text.substr(text.find(':') + 1);
  return result;
}

// What the store says where it has no image: whose fault it is as the reason, and its sentence.
std::optional<http::Failure> judged(const http::Response& response) {
  if (response.status == 200) return std::nullopt;
  const auto json = json_from(response.body);
  http::Failure failure{http::Failure::Kind::status, response.status, text_of(json, "fault"),
                        one_line(text_view(json, "error")), response.retry_after};
  if (failure.message.empty()) failure.message = one_line(response.body, 200);
  return failure;
}

Result<std::string> image_in(const http::Response& response) {
  std::string image = text_of(json_from(response.body), "image");
  if (image.empty()) return error("the image store's answer cannot be understood");
  return image;
}

Error why(const http::Failure& failure) {
  if (failure.kind == http::Failure::Kind::status && failure.reason == k_users)
    return Error(failure.message).with(ImageQuestion::UsersFault{});
  if (failure.kind == http::Failure::Kind::status)
    return error("the image store: {} {}", failure.status, failure.message);
  return error("the image store does not answer: {}", one_line(failure.message, 200));
}

std::string header_text(std::string_view text) {
  return harmless(one_line(text, k_longest_owner));
}

}  // namespace

class ImageUploads::Upload : public StoreQuestion {
 public:
  Upload(ImageUploads& uploads, Fd file, std::string owner, Milliseconds patience,
         ImageQuestion::Handler handler)
      : uploads_(uploads),
        file_(std::make_shared<Fd>(std::move(file))),
        owner_(std::move(owner)),
        deadline_(std::chrono::steady_clock::now() + patience),
        handler_(std::move(handler)) {
    // What a thread has may outlive the question.
    uploads_.workers_.run([self = this, dropped = dropped_, file = file_, inbox = uploads_.inbox_.get()] {
      auto hashed = std::make_shared<Result<HashedImage>>(hash_of(*file, *dropped));
      inbox->post([self, dropped, hashed] {
        if (!*dropped) self->send(*hashed);
      });
    });
  }
  ~Upload() override { *dropped_ = true; }
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;

 private:
  void send(const Result<HashedImage>& hashed) {
    if (!hashed) return end(hashed.error());
    hashed_ = *hashed;
    http::Plan plan;
    plan.request = [this] { return request(); };
    plan.deadline = deadline_;
    plan.attempt_limit = std::chrono::ceil<Milliseconds>(deadline_ - std::chrono::steady_clock::now());
    plan.judge = judged;
    // A store that is busy is well. What breaks off later than one that cannot be reached does was heard
    // until then, so that this trouble is a new one.
    plan.attempted = [this](const std::string&, int status, std::chrono::duration<double> took) {
      if (status == 429 || (status == 0 && took > uploads_.settings_.trouble / 4)) trouble_.reset();
    };
    plan.hopeless = [this](const http::Failure& failure) {
      if (failure.status == 409 || failure.status == 507) return true;
      if (failure.status == 429) return false;
      const auto now = std::chrono::steady_clock::now();
      if (!trouble_) trouble_ = now;
      return now - *trouble_ >= uploads_.settings_.trouble;
    };
    exchange_ = std::make_unique<http::Exchange>(
        *uploads_.transport_, std::move(plan),
        [this](const Result<http::Response>& response, const std::string&) {
          end(response ? image_in(*response) : Result<std::string>(why(http::Failure::of(response.error()))));
        });
  }

  http::Request request() const {
    const auto& settings = uploads_.settings_;
    http::Request request;
    request.method = "PUT";
    request.url = settings.url + "/v1/images/" + hashed_.key;
    request.unix_socket = settings.unix_socket;
    request.ca_file = settings.ca_file;
    request.longest_body = k_longest_answer;
    request.headers = {"Content-Type: application/octet-stream", "Glidepod-Owner: " + header_text(owner_)};
    // Without a token the store answers 401, and its words say more than an error of ours would.
    if (const auto token = read_file(settings.token_file, k_longest_token))
      request.authorization = fmt::format("Bearer {}", trim(token.value()));
    request.file = file_;
    request.file_size = hashed_.size;
    request.go_ahead = std::chrono::ceil<Milliseconds>(deadline_ - std::chrono::steady_clock::now());
    return request;
  }

  void end(const Result<std::string>& image) {
    if (const auto handler = std::exchange(handler_, {})) handler(image);  // this may be gone from here on
  }

  ImageUploads& uploads_;
  std::shared_ptr<Fd> file_;
  std::string owner_;
  SteadyTime deadline_;
  ImageQuestion::Handler handler_;
  std::shared_ptr<std::atomic<bool>> dropped_ = std::make_shared<std::atomic<bool>>(false);
  HashedImage hashed_;
  std::optional<SteadyTime> trouble_;  // since when the store has it
  std::unique_ptr<http::Exchange> exchange_;
};

Result<std::unique_ptr<ImageUploads>> ImageUploads::create(Loop& loop, Settings settings) {
  while (settings.url.ends_with('/')) settings.url.pop_back();
  auto transport = TRY(http::Transport::create(loop));
  auto inbox = TRY(Inbox::create(loop));
  return std::unique_ptr<ImageUploads>(
      new ImageUploads(std::move(settings), std::move(transport), std::move(inbox)));
}

std::unique_ptr<StoreQuestion> ImageUploads::ask(Fd file, std::string owner, Milliseconds patience,
                                                 ImageQuestion::Handler handler) {
  return std::make_unique<Upload>(*this, std::move(file), std::move(owner), patience, std::move(handler));
}

}  // namespace glidepod::agent
