#include "lib/http/status_server.hpp"

#include <httplib.h>

#include <condition_variable>
#include <optional>

#include "lib/http/limited_stream.hpp"

namespace glidepod::http {
namespace {

constexpr std::size_t k_connections = 32;
constexpr std::chrono::seconds k_patience{10};

}  // namespace

// Threads ask, and the loop answers, unless the server has been destroyed meanwhile.
struct StatusServer::Questions {
  Handler handler;
  std::mutex mutex;
  std::condition_variable news;
  bool over = false;

  Answer ask(const std::shared_ptr<Questions>& self, Inbox& inbox, const std::string& path) {
    const auto answer = std::make_shared<std::optional<Answer>>();
    inbox.post([self, answer, path] {
      auto given = self->handler(path);
      const std::lock_guard lock(self->mutex);
      *answer = std::move(given);
      self->news.notify_all();
    });
    std::unique_lock lock(mutex);
    news.wait_for(lock, k_patience, [&] { return over || answer->has_value(); });
    return answer->value_or(Answer{503, "busy\n"});
  }
};

Result<std::unique_ptr<StatusServer>> StatusServer::create(Loop& loop, const std::string& address,
                                                           Handler handler) {
  std::unique_ptr<StatusServer> made(new StatusServer);
  made->questions_ = std::make_shared<Questions>();
  made->questions_->handler = std::move(handler);
  made->inbox_ = TRY(Inbox::create(loop));
  Server::Settings settings;
  settings.connections = settings.not_owners = k_connections;
  settings.keep = Server::Settings::Keep::nothing;
  settings.admit = [](const Connection&, const httplib::Request& request) -> std::optional<Refusal> {
    if (request.method == "GET" || request.method == "HEAD") return std::nullopt;
    return Refusal{405, "only GET and HEAD"};
  };
  settings.handle = [self = made.get()](const Connection&, const httplib::Request& request,
                                        httplib::Response& response) {
    const auto answer = self->questions_->ask(self->questions_, *self->inbox_, request.path);
    response.set_header("X-Content-Type-Options", "nosniff");
    for (const auto& [name, value] : answer.headers) response.set_header(name, value);
    if (const auto tag = '"' + answer.tag + '"'; !answer.tag.empty()) {
      response.set_header("ETag", tag);
      if (request.get_header_value("If-None-Match") == tag) {
        response.status = 304;
        return;
      }
    }
    response.status = answer.status;
    response.set_content(answer.body, answer.type);
  };
  made->server_ = std::make_unique<Server>(loop, std::move(settings));
  made->port_ = TRY(made->server_->listen_tcp(address));
  return made;
}

StatusServer::~StatusServer() {
  if (questions_) {
    const std::lock_guard lock(questions_->mutex);
    questions_->over = true;
    questions_->news.notify_all();
  }
  server_.reset();
}

}  // namespace glidepod::http
