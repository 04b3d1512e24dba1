#include "podhost/http_server.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <httplib.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>

#include "lib/base/file.hpp"
#include "lib/base/log.hpp"
#include "lib/kube/api_error.hpp"

namespace glidepod::podhost {
namespace {

constexpr std::size_t k_connections = 256;
constexpr std::size_t k_connections_of_a_pod = 16;
constexpr Milliseconds k_idle_limit{60000};
constexpr Milliseconds k_request_limit{30000};  // from a request's first byte to its last
constexpr Milliseconds k_write_limit{20000};    // for a write to make any progress
constexpr std::size_t k_body_limit = std::size_t{3} << 20;

int left_until(SteadyTime deadline) {
  const auto left = std::chrono::ceil<Milliseconds>(deadline - std::chrono::steady_clock::now());
  return std::max(0, static_cast<int>(left.count()));
}

// A socket with limits on how long a client may take.
class LimitedStream : public httplib::Stream {
 public:
  explicit LimitedStream(int fd) : fd_(fd) {}

  // Waits for a request's first byte.
  bool await_request() {
    deadline_ = std::chrono::steady_clock::now() + k_idle_limit;
    const bool came = begin_ < end_ || fill();
    deadline_ = std::chrono::steady_clock::now() + k_request_limit;
    return came;
  }

  bool is_readable() const override { return true; }
  bool is_writable() const override {
    pollfd wait{fd_, POLLOUT, 0};
    return poll(&wait, 1, static_cast<int>(k_write_limit.count())) == 1 && !(wait.revents & (POLLERR | POLLHUP));
  }
  ssize_t read(char* target, std::size_t size) override {
    if (begin_ == end_ && !fill()) return -1;
    const std::size_t count = std::min(size, end_ - begin_);
    std::copy_n(buffer_.data() + begin_, count, target);
    begin_ += count;
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* data, std::size_t size) override {
    while (true) {
      const ssize_t sent = send(fd_, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent >= 0) return sent;
      if (errno == EINTR) continue;
      if (errno != EAGAIN || !is_writable()) return -1;
    }
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip.clear();
    port = 0;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override { get_remote_ip_and_port(ip, port); }
  socket_t socket() const override { return fd_; }

 private:
  bool fill() {
    pollfd wait{fd_, POLLIN, 0};
    int ready = 0;
    do {
      ready = poll(&wait, 1, left_until(deadline_));
    } while (ready < 0 && errno == EINTR);
    if (ready != 1) return false;
    const ssize_t got = recv(fd_, buffer_.data(), buffer_.size(), 0);
    if (got <= 0) return false;
    begin_ = 0;
    end_ = static_cast<std::size_t>(got);
    return true;
  }

  int fd_;
  SteadyTime deadline_;
  std::array<char, 8192> buffer_;
  std::size_t begin_ = 0, end_ = 0;
};

thread_local const Connection* t_connection = nullptr;

void set_error(httplib::Response& response, const kube::ApiError& error) {
  response.status = error.code;
  response.set_content(error.to_json().dump(-1, ' ', false, kube::Json::error_handler_t::replace), "application/json");
}

}  // namespace

// cpp-httplib's parser and writer, without its sockets and threads: those wake up every few milliseconds.
class HttpServer::Engine : public httplib::Server {
 public:
  explicit Engine(RequestHandler handler) : handler_(std::move(handler)) {
    const auto handle = [this](const httplib::Request& request, httplib::Response& response) {
      handler_(*t_connection, request, response);
    };
    Get("/.*", handle).Post("/.*", handle).Put("/.*", handle).Patch("/.*", handle).Delete("/.*", handle);
    set_payload_max_length(k_body_limit);
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
      if (response.status == 413) {
        set_error(response, kube::ApiError::too_large());
      } else if (response.status == 404) {
        set_error(response, kube::ApiError::path_not_found());
      } else if (response.status >= 400) {
        set_error(response, {response.status, "BadRequest", "the request could not be read"});
      }
    });
  }

  bool process(LimitedStream& stream) {
    bool closed = false;
    const bool good = process_request(stream, false, closed, [](httplib::Request& request) {
      // Compression would hold a watch's events back, and ranges mean nothing here.
      request.headers.erase("Accept-Encoding");
      request.headers.erase("Range");
      request.ranges.clear();
    });
    return good && !closed;
  }

 private:
  RequestHandler handler_;
};

bool Connection::wait(int other_fd, Milliseconds limit) const {
  pollfd both[] = {{other_fd, POLLIN, 0}, {fd, POLLIN | POLLRDHUP, 0}};
  const SteadyTime deadline = std::chrono::steady_clock::now() + limit;
  while (poll(both, 2, left_until(deadline)) < 0) {
    if (errno != EINTR) return false;
  }
  // Whatever a client says while it is being answered, it can only be that it leaves.
  return both[1].revents == 0;
}

HttpServer::HttpServer(Loop& loop, RequestHandler handler)
    : loop_(loop), engine_(std::make_unique<Engine>(std::move(handler))), threads_(std::in_place, k_connections) {}

HttpServer::~HttpServer() { stop(); }

Result<void> HttpServer::add(Listener listener) {
  const int fd = listener.fd.get();
  TRY(loop_.watch(fd, EPOLLIN, [this, fd](std::uint32_t) { accept(fd); }));
  listeners_.emplace(fd, std::move(listener));
  return {};
}

namespace {

// Binds by way of the folder's descriptor: a pod's path may be longer than a socket address can be.
Result<Fd> bind_unix(const std::string& path, gid_t group) {
  const auto slash = path.rfind('/');
  const Fd folder = TRY(open_file(path.substr(0, std::max<std::size_t>(slash, 1)), O_PATH | O_DIRECTORY));
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return Error::system("socket");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = fmt::format("/proc/self/fd/{}/{}", folder.get(), path.substr(slash + 1));
  if (name.size() >= sizeof address.sun_path) return error("socket name too long: {}", path);
  std::copy(name.begin(), name.end(), address.sun_path);
  unlink(name.c_str());
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      chmod(name.c_str(), 0660) != 0 || chown(name.c_str(), 0, group) != 0 || listen(fd.get(), 128) != 0) {
    return Error::system("listen on {}", path);
  }
  return fd;
}

}  // namespace

Result<void> HttpServer::listen_unix(const std::string& path) {
  return add({TRY(bind_unix(path, 0)), {Caller::Kind::admin, {}}, path});
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
  if (bind(fd.get(), generic, size) != 0 || listen(fd.get(), 128) != 0 || getsockname(fd.get(), generic, &size) != 0) {
    return Error::system("listen on 127.0.0.1:{}", port);
  }
  TRY(add({std::move(fd), {Caller::Kind::token_needed, {}}, {}}));
  return int{ntohs(address.sin_port)};
}

Result<void> HttpServer::open(const std::string& uid, const std::string& path, std::optional<std::int64_t> group) {
  return add({TRY(bind_unix(path, static_cast<gid_t>(group.value_or(0)))), {Caller::Kind::pod, uid}, path});
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
  for (const auto& [fd, owner] : connections_) {
    if (owner == uid) shutdown(fd, SHUT_RDWR);
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
    for (const auto& [fd, owner] : connections_) shutdown(fd, SHUT_RDWR);
  }
  threads_.reset();
}

void HttpServer::accept(int listener_fd) {
  const auto listener = listeners_.find(listener_fd);
  if (listener == listeners_.end()) return;
  Fd fd(accept4(listener_fd, nullptr, nullptr, SOCK_CLOEXEC));
  if (!fd) {
    if (errno != EAGAIN && errno != ECONNABORTED) spdlog::warn("accept failed error={}", glidepod::quoted(strerror(errno)));
    return;
  }
  const Caller caller = listener->second.caller;
  std::size_t total = 0, of_this = 0;
  {
    const std::lock_guard lock(mutex_);
    total = connections_.size();
    of_this = static_cast<std::size_t>(std::ranges::count(connections_, caller.uid, [](const auto& c) { return c.second; }));
    if (total < k_connections && (caller.kind != Caller::Kind::pod || of_this < k_connections_of_a_pod)) {
      connections_.emplace(fd.get(), caller.uid);
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
  t_connection = &connection;
  LimitedStream stream(fd.get());
  while (stream.await_request() && engine_->process(stream)) {
  }
  t_connection = nullptr;
  const std::lock_guard lock(mutex_);
  connections_.erase(fd.get());
  fd.reset();  // under the lock: the number must not be listed once it can be another's
}

}  // namespace glidepod::podhost
