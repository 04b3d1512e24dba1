#include "store/door.hpp"

#include <httplib.h>

#include <nlohmann/json.hpp>

#include "lib/base/json.hpp"
#include "lib/base/log.hpp"
#include "lib/base/text.hpp"
#include "lib/http/limited_stream.hpp"
#include "store/digest.hpp"
#include "store/layer.hpp"
#include "store/limits.hpp"

namespace glidepod::store {
namespace {

constexpr std::string_view k_images = "/v1/images/";
constexpr std::string_view k_bearer = "Bearer ";
constexpr const char* k_owner = "Glidepod-Owner";
constexpr std::size_t k_longest_owner = 100;

// The fact of an Error: what to answer.
struct Status {
  int number;
};

Error status(int number, std::string why) {
  return Error(std::move(why)).with(Status{number});
}

int status_of(const Error& why) {
  if (const auto* told = why.fact<Status>()) return told->number;
  if (why.fact<NotLetIn>()) return 401;
  if (why.fact<Forged>()) return 409;
  if (why.fact<BadImage>()) return 422;
  return why.fact<NoRoom>() ? 507 : 503;
}

void answer(httplib::Response& response, const Result<std::string>& image) {
  response.status = image ? 200 : status_of(image.error());
  const bool users = !image && image.error().fact<BadImage>() != nullptr;
  const nlohmann::json body = image ? nlohmann::json{{"image", *image}}
                                    : nlohmann::json{{"error", image.error().message()},
                                                     {"fault", users ? "user" : "infrastructure"}};
  response.set_content(json_text(body) + "\n", "application/json");
}

// The key that a request is about.
Result<std::string> key_of(const httplib::Request& request) {
  const std::string_view path = request.path;
  if (!path.starts_with(k_images) || !is_digest(fmt::format("sha256:{}", path.substr(k_images.size()))))
    return status(404, "there is nothing here but /v1/images/SHA256, of 64 digits from 0 to f");
  return std::string(path.substr(k_images.size()));
}

}  // namespace

// One request of a pod, of which there may be so many at a time.
class Door::Guest {
 public:
  Guest(Door& door, const Account& account)
      : door_(door), name_(account.name_space + "/" + (account.pod.empty() ? account.name : account.pod)) {
    const std::scoped_lock lock(door_.mutex_);
    auto& count = door_.guests_[name_];
    let_in_ = count < door_.settings_.each_pod;
    if (let_in_) ++count;
  }
  ~Guest() {
    if (!let_in_) return;
    const std::scoped_lock lock(door_.mutex_);
    if (--door_.guests_[name_] == 0) door_.guests_.erase(name_);
  }
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;
  const std::string& name() const { return name_; }
  Result<void> check() const {
    if (let_in_) return {};
    return status(429, fmt::format("pod {} has {} requests under way", name_, door_.settings_.each_pod));
  }

 private:
  Door& door_;
  std::string name_;
  bool let_in_ = false;
};

Result<int> Door::open(Settings settings) {
  settings_ = std::move(settings);
  if (!settings_.certificate_file.empty())
    certificate_ = TRY(http::Certificate::load(settings_.certificate_file, settings_.key_file));
  http::Server::Settings server;
  server.keep = http::Server::Settings::Keep::nothing;
  server.certificate = certificate_.get();
  server.not_owners = server.connections;
  server.longest_upload = Limits{}.content;
  server.admit = [](const http::Connection&,
                    const httplib::Request& request) -> std::optional<http::Refusal> {
    if (request.method == "GET" || request.method == "HEAD" || request.method == "PUT") return std::nullopt;
    return http::Refusal{405, "only GET, HEAD and PUT"};
  };
  server.handle = [this](const http::Connection&, const httplib::Request& request,
                         httplib::Response& response) { look(request, response); };
  server.upload = [this](const http::Connection&, const httplib::Request& request, http::Upload& upload,
                         httplib::Response& response) { take(request, upload, response); };
  server.refuse = [](const http::Refusal& refusal, httplib::Response& response) {
    answer(response, status(refusal.status, refusal.message));
  };
  server_ = std::make_unique<http::Server>(loop_, std::move(server));
  return server_->listen_tcp(settings_.address);
}

Result<Account> Door::account(const httplib::Request& request) {
  const std::string header = request.get_header_value("Authorization");
  if (!header.starts_with(k_bearer)) return status(401, "a request needs its pilot's token");
  return tokens_.account_of(std::string(trim(std::string_view(header).substr(k_bearer.size()))));
}

void Door::look(const httplib::Request& request, httplib::Response& response) {
  if (request.path == "/healthz") return response.set_content("ok\n", "text/plain; charset=utf-8");
  answer(response, [&]() -> Result<std::string> {
    const std::string key = TRY(key_of(request));
    const Guest guest(*this, TRY(account(request)));
    TRY(guest.check());
    auto image = TRY(keeper_.find(key));
    return image ? Result<std::string>(std::move(*image))
                 : status(404, "nobody has brought a file with this SHA-256");
  }());
}

void Door::take(const httplib::Request& request, http::Upload& upload, httplib::Response& response) {
  const auto image = [&]() -> Result<std::string> {
    const std::string key = TRY(key_of(request));
    const Account whose = TRY(account(request));
    const Guest guest(*this, whose);
    TRY(guest.check());
    const std::string owner = one_line(request.get_header_value(k_owner), k_longest_owner);
    spdlog::info("event=asked pod={} owner={} file=sha256:{} size={}", guest.name(), quoted(owner), key,
                 upload.size());
    return keeper_.image_of(key, {whose.name_space + "/" + owner, upload.size(),
                                  [&upload](const Sink& sink) { return upload.read(sink); }});
  }();
  if (!image) spdlog::warn("event=no_image reason={}", quoted(image.error().message()));
  answer(response, image);
}

}  // namespace glidepod::store
