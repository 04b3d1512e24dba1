#include "podhost/http_server.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>

#include "lib/base/file.hpp"
#include "lib/base/log.hpp"
#include "lib/kube/api_error.hpp"
#include "podhost/limited_stream.hpp"

namespace glidepod::podhost {
namespace {

constexpr std::size_t k_connections = 256;
// Of pods and of clients on TCP together: they must not shut out who comes by the admin's socket.
constexpr std::size_t k_connections_of_guests = 192;
constexpr std::size_t k_connections_of_a_pod = 16;

// The request that this thread is answering.
struct Exchange {
  const Connection& connection;
  LimitedStream& stream;
  std::optional<kube::ApiError> refused;  // decided by the headers alone
};
thread_local Exchange* t_exchange = nullptr;

void set_error(httplib::Response& response, const kube::ApiError& error) {
  response.status = error.code;
  response.set_content(error.to_json().dump(-1, ' ', false, kube::Json::error_handler_t::replace),
                       "application/json");
}

}  // namespace

// cpp-httplib's parser and writer, without its sockets and threads: those wake up every few milliseconds.
class HttpServer::Engine : public httplib::Server {
 public:
  Engine(Admission admission, RequestHandler handler)
      : admission_(std::move(admission)), handler_(std::move(handler)) {
    // Before the body is read.
    set_pre_routing_handler([](const auto&, httplib::Response& response) {
      if (!t_exchange->refused) return HandlerResponse::Unhandled;
      set_error(response, *t_exchange->refused);
      return HandlerResponse::Handled;
    });
    const auto handle = [this](const httplib::Request& request, httplib::Response& response) {
      handler_(t_exchange->connection, request, response);
    };
    Get("/.*", handle).Post("/.*", handle).Put("/.*", handle).Patch("/.*", handle).Delete("/.*", handle);
    set_payload_max_length(LimitedStream::k_body_limit);
    set_keep_alive_timeout(60);
    set_keep_alive_max_count(1000000);
    // Streams go on for as long as the server seems to listen; this one leaves that to others.
    svr_sock_ = 0;
    set_exception_handler([](const auto&, httplib::Response& response, const std::exception_ptr& failure) {
      std::string what = "unknown";
      try {
        std::rethrow_exception(failure);
      } catch (const std::exception& exception) {
        what = exception.what();
      } catch (...) {
      }
      spdlog::error("request failed error={}", glidepod::quoted(what));
      set_error(response, kube::ApiError::internal(what));
    });
    set_error_handler([](const auto&, httplib::Response& response) {
      if (!response.body.empty()) return;
      if (response.status == 413 || t_exchange->stream.too_long()) {
        set_error(response, kube::ApiError::too_large());
      } else if (response.status == 404) {
        set_error(response, kube::ApiError::path_not_found());
      } else if (response.status >= 400) {
        set_error(response, {response.status, "BadRequest", "the request could not be read"});
      }
    });
  }

  // Answers one request. False if the connection is then to be closed.
  bool process(Exchange& exchange) {
    bool closed = false;
    const bool good = process_request(exchange.stream, false, closed, [&](httplib::Request& request) {
      // Compression would hold a watch's events back, and ranges mean nothing here.
      request.headers.erase("Accept-Encoding");
      request.headers.erase("Range");
      request.ranges.clear();
      exchange.refused = exchange.stream.check_framing(request);
      if (!exchange.refused) exchange.refused = admission_(exchange.connection, request);
      if (!exchange.refused && request.method == "OPTIONS")
        exchange.refused = kube::ApiError::method_not_allowed();
      if (!exchange.refused) return;
      request.headers.erase("Expect");
      request.headers.erase("Connection");
      request.headers.emplace("Connection", "close");
    });
    if (exchange.refused || !exchange.stream.in_step() || exchange.stream.too_long()) {
      exchange.stream.linger();
      return false;
    }
    return good && !closed;
  }

 private:
  Admission admission_;
  RequestHandler handler_;
};

short Connection::gone_events() const {
  return caller.kind == Caller::Kind::token_needed ? POLLRDHUP : 0;
}

bool Connection::wait(int other_fd, Milliseconds limit) const {
  pollfd both[] = {{other_fd, POLLIN, 0}, {fd, gone_events(), 0}};
  const SteadyTime deadline = std::chrono::steady_clock::now() + limit;
  while (poll(both, 2, left_until(deadline)) < 0) {
    if (errno != EINTR) return false;
  }
  return both[1].revents == 0;
}

HttpServer::HttpServer(Loop& loop, Admission admission, RequestHandler handler)
    : loop_(loop),
      engine_(std::make_unique<Engine>(std::move(admission), std::move(handler))),
      threads_(std::in_place, k_connections),
      spare_(::open("/dev/null", O_RDONLY | O_CLOEXEC)) {}

HttpServer::~HttpServer() {
  stop();
}

Result<void> HttpServer::add(Listener listener) {
  const int fd = listener.fd.get();
  TRY(loop_.watch(fd, EPOLLIN, [this, fd](std::uint32_t) { accept(fd); }));
  listeners_.emplace(fd, std::move(listener));
  return {};
}

namespace {

// Binds by way of the folder's descriptor: a pod's path may be longer than a socket address can be.
Result<Fd> bind_unix(const std::string& path, gid_t group, mode_t mode) {
  const auto slash = path.rfind('/');
  const Fd folder = TRY(open_file(path.substr(0, std::max<std::size_t>(slash, 1)), O_PATH | O_DIRECTORY));
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return Error::system("socket");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = fmt::format("/proc/self/fd/{}/{}", folder.get(), path.substr(slash + 1));
  if (name.size() >= sizeof address.sun_path) return error("socket name too long: {}", path);
  std::copy(name.begin(), name.end(), address.sun_path);
  struct stat present {};
  if (lstat(name.c_str(), &present) == 0) {
    if (!S_ISSOCK(present.st_mode)) return error("listen on {}: it exists and is no socket", path);
    const Fd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
        errno == EAGAIN) {
      return error("listen on {}: another program does", path);
    }
    unlink(name.c_str());
  }
  // The umask, 0022, lets nobody else connect before the mode is set.
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      chown(name.c_str(), 0, group) != 0 || chmod(name.c_str(), mode) != 0 || listen(fd.get(), 128) != 0) {
    return Error::system("listen on {}", path);
  }
  return fd;
}

}  // namespace

Result<void> HttpServer::listen_unix(const std::string& path) {
  return add({TRY(bind_unix(path, 0, 0600)), {Caller::Kind::admin, {}}, path});
}

Result<int> HttpServer::listen_loopback(int port) {
  Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return Error::system("socket");
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(fd.get(), generic, size) != 0 || listen(fd.get(), 128) != 0 ||
      getsockname(fd.get(), generic, &size) != 0) {
    return Error::system("listen on 127.0.0.1:{}", port);
  }
  TRY(add({std::move(fd), {Caller::Kind::token_needed, {}}, {}}));
  return int{ntohs(address.sin_port)};
}

Result<void> HttpServer::open(const std::string& uid, const std::string& path,
                              std::optional<std::int64_t> group) {
  const auto owner = static_cast<gid_t>(group.value_or(0));
  return add({TRY(bind_unix(path, owner, group ? 0660 : 0600)), {Caller::Kind::pod, uid}, path});
}

void HttpServer::close(const std::string& uid) {
  for (auto it = listeners_.begin(); it != listeners_.end();) {
    if (it->second.caller.kind != Caller::Kind::pod || it->second.caller.uid != uid) {
      ++it;
      continue;
    }
    loop_.forget(it->first);
    unlink(it->second.path.c_str());
    it = listeners_.erase(it);
  }
  const std::lock_guard lock(mutex_);
  for (const auto& [fd, caller] : connections_) {
    if (caller.kind == Caller::Kind::pod && caller.uid == uid) shutdown(fd, SHUT_RDWR);
  }
}

void HttpServer::stop() {
  for (const auto& [fd, listener] : listeners_) {
    loop_.forget(fd);
    if (!listener.path.empty()) unlink(listener.path.c_str());
  }
  listeners_.clear();
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [fd, caller] : connections_) shutdown(fd, SHUT_RDWR);
  }
  threads_.reset();
}

void HttpServer::accept(int listener_fd) {
  const auto listener = listeners_.find(listener_fd);
  if (listener == listeners_.end()) return;
  Fd fd(accept4(listener_fd, nullptr, nullptr, SOCK_CLOEXEC));
  if (!fd) {
    if (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR) return;
    spdlog::warn("accept failed error={}", glidepod::quoted(strerror(errno)));
    // Out of descriptors: with the spare one the client is turned away, or it would wake this loop for ever.
    spare_.reset();
    Fd(accept4(listener_fd, nullptr, nullptr, SOCK_CLOEXEC)).reset();
    spare_.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    return;
  }
  const Caller caller = listener->second.caller;
  std::size_t total = 0, guests = 0, of_this = 0;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [other, who] : connections_) {
      ++total;
      guests += who.kind != Caller::Kind::admin ? 1 : 0;
      of_this += who.kind == caller.kind && who.uid == caller.uid ? 1 : 0;
    }
    const bool guest_may = caller.kind == Caller::Kind::admin || guests < k_connections_of_guests;
    const bool pod_may = caller.kind != Caller::Kind::pod || of_this < k_connections_of_a_pod;
    if (total < k_connections && guest_may && pod_may) {
      connections_.emplace(fd.get(), caller);
      // std::function wants something copyable; the descriptor is owned again in serve().
      threads_->run([this, raw = fd.release(), caller] { serve(Fd(raw), caller); });
      return;
    }
  }
  spdlog::warn("connection refused reason=too-many connections={} of_this_caller={}", total, of_this);
  static constexpr std::string_view k_busy =
      "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\nRetry-After: 1\r\n\r\n";
  send(fd.get(), k_busy.data(), k_busy.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void HttpServer::serve(Fd fd, const Caller& caller) {
  const Connection connection{caller, fd.get()};
  LimitedStream stream(fd.get());
  bool more = true;
  while (more && stream.await_request()) {
    Exchange exchange{connection, stream, {}};
    t_exchange = &exchange;
    more = engine_->process(exchange);
    t_exchange = nullptr;
  }
  const std::lock_guard lock(mutex_);
  connections_.erase(fd.get());
  fd.reset();  // under the lock: the number must not be listed once it can be another's
}

}  // namespace glidepod::podhost
