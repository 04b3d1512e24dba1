#include "lib/http/server.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "lib/base/file.hpp"
#include "lib/base/log.hpp"
#include "lib/base/text.hpp"
#include "lib/http/limited_stream.hpp"
#include "lib/http/tls.hpp"

namespace glidepod::http {
namespace {

// The request that this thread is answering.
struct Exchange {
  const Connection& connection;
  LimitedStream& stream;
  std::optional<Refusal> refused;  // set if the headers alone decide
  bool waits = false;              // the client sends the body when it is told to
};
thread_local Exchange* t_exchange = nullptr;

constexpr Milliseconds k_handshake_limit{10'000};
constexpr std::size_t k_read_at_a_time = std::size_t{256} << 10;

class Body : public Upload {
 public:
  Body(Exchange& exchange, std::uint64_t size) : exchange_(exchange), size_(size) {}
  std::uint64_t size() const override { return size_; }
  Result<void> read(const std::function<Result<void>(std::string_view)>& sink) override {
    auto& stream = exchange_.stream;
    constexpr std::string_view k_go_on = "HTTP/1.1 100 Continue\r\n\r\n";
    if (exchange_.waits && stream.write(k_go_on.data(), k_go_on.size()) != std::ssize(k_go_on))
      return error("the client has gone");
    stream.begin_upload(size_);
    std::vector<char> buffer(std::min<std::uint64_t>(k_read_at_a_time, size_));
    std::size_t full = 0;
    for (std::uint64_t done = 0; done < size_;) {
      const auto got = stream.read_upload(buffer.data() + full,
                                          std::min<std::uint64_t>(buffer.size() - full, size_ - done));
      if (got <= 0)
        return error("the upload {} after {} of {} bytes", got == 0 ? "ended" : "was too slow, or broke",
                     done, size_);
      full += static_cast<std::size_t>(got);
      done += static_cast<std::uint64_t>(got);
      if (full < buffer.size() && done < size_) continue;  // a record of TLS is small
      TRY(sink(std::string_view(buffer.data(), std::exchange(full, 0))));
    }
    stream.upload_ended();
    return {};
  }

 private:
  Exchange& exchange_;
  std::uint64_t size_;
};

}  // namespace

// cpp-httplib's parser and writer, without its sockets and threads, which wake up every few milliseconds.
class Server::Engine : public httplib::Server {
 public:
  explicit Engine(Settings settings) : settings_(std::move(settings)) {
    // This is called before the body is read.
    set_pre_routing_handler([this](const auto& request, httplib::Response& response) {
      if (t_exchange->refused)
        answer(response, *t_exchange->refused);
      else if (settings_.upload && request.method == "PUT")
        take_upload(request, response);
      else
        return HandlerResponse::Unhandled;
      return HandlerResponse::Handled;
    });
    const auto handle = [this](const httplib::Request& request, httplib::Response& response) {
      settings_.handle(t_exchange->connection, request, response);
    };
    Get("/.*", handle).Post("/.*", handle).Put("/.*", handle).Patch("/.*", handle).Delete("/.*", handle);
    set_payload_max_length(LimitedStream::k_body_limit);
    set_keep_alive_timeout(60);
    set_keep_alive_max_count(1000000);
    // cpp-httplib ends a stream when its own server does not listen, so this makes it look as if it did.
    svr_sock_ = 0;
    set_exception_handler(
        [this](const auto&, httplib::Response& response, const std::exception_ptr& failure) {
          std::string what = "unknown";
          try {
            std::rethrow_exception(failure);
          } catch (const std::exception& exception) {
            what = exception.what();
          } catch (...) {
          }
          spdlog::error("event=request_failed error={}", glidepod::quoted(what));
          answer(response, {500, what});
        });
    set_error_handler([this](const auto&, httplib::Response& response) {
      if (!response.body.empty()) return;
      if (response.status == 413 || t_exchange->stream.too_long()) {
        answer(response, {413, "the request is too long"});
      } else if (response.status == 404) {
        answer(response, {404, "there is nothing here"});
      } else if (response.status >= 400) {
        answer(response, {response.status, "the request could not be read"});
      }
    });
  }

  // Answers one request. Returns false if the connection is to be closed after that.
  bool process(Exchange& exchange) {
    bool closed = false;
    const bool good = process_request(exchange.stream, false, closed, [&](httplib::Request& request) {
      // Compression would hold a watch's events back, and ranges mean nothing here.
      request.headers.erase("Accept-Encoding");
      request.headers.erase("Range");
      request.ranges.clear();
      exchange.refused =
          exchange.stream.check_framing(request, settings_.upload ? settings_.longest_upload : 0);
      if (!exchange.refused && settings_.admit)
        exchange.refused = settings_.admit(exchange.connection, request);
      if (!exchange.refused && request.method == "OPTIONS") exchange.refused = Refusal{405, "no such method"};
      if (!exchange.refused && settings_.upload && request.method == "PUT") {
        // The handler says when.
        exchange.waits = request.get_header_value("Expect") == "100-continue";
        request.headers.erase("Expect");
        request.headers.erase("Connection");
        request.headers.emplace("Connection", "close");
      }
      if (!exchange.refused && settings_.keep == Settings::Keep::connections) return;
      if (exchange.refused) request.headers.erase("Expect");
      request.headers.erase("Connection");
      request.headers.emplace("Connection", "close");
    });
    if (exchange.refused || !exchange.stream.in_step() || exchange.stream.too_long()) {
      exchange.stream.linger();
      return false;
    }
    return good && !closed && settings_.keep == Settings::Keep::connections;
  }

 private:
  void take_upload(const httplib::Request& request, httplib::Response& response) {
    const auto length = parse_integer(request.get_header_value("Content-Length"));
    Body body(*t_exchange, length ? static_cast<std::uint64_t>(length.value()) : 0);
    settings_.upload(t_exchange->connection, request, body, response);
  }
  void answer(httplib::Response& response, const Refusal& refusal) const {
    response.status = refusal.status;
    if (settings_.refuse)
      settings_.refuse(refusal, response);
    else
      response.set_content(refusal.message + "\n", "text/plain; charset=utf-8");
  }
  Settings settings_;
};

short Connection::gone_events() const {
  return caller.kind == Caller::Kind::network ? POLLRDHUP : 0;
}

bool Connection::wait(int other_fd, Milliseconds limit) const {
  pollfd both[] = {{other_fd, POLLIN, 0}, {fd, gone_events(), 0}};
  const SteadyTime deadline = std::chrono::steady_clock::now() + limit;
  while (poll(both, 2, left_until(deadline)) < 0) {
    if (errno != EINTR) return false;
  }
  return both[1].revents == 0;
}

Server::Server(Loop& loop, Settings settings)
    : loop_(loop),
      limit_(settings.connections),
      not_owners_(settings.not_owners),
      each_guest_(settings.each_guest),
      certificate_(settings.certificate),
      engine_(std::make_unique<Engine>(std::move(settings))),
      threads_(std::in_place, limit_),
      spare_(::open("/dev/null", O_RDONLY | O_CLOEXEC)) {}

Server::~Server() {
  stop();
}

Result<void> Server::add(Listener listener) {
  const int fd = listener.fd.get();
  TRY(loop_.watch(fd, EPOLLIN, [this, fd](std::uint32_t) { accept(fd); }));
  listeners_.emplace(fd, std::move(listener));
  return {};
}

namespace {

// Binds through the folder's descriptor, since a pod's path may be longer than a socket address can be.
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

Result<void> Server::listen_unix(const std::string& path) {
  return add({TRY(bind_unix(path, 0, 0600)), {Caller::Kind::owner, {}}, path});
}

Result<int> Server::listen_tcp(const std::string& address) {
  const auto colon = address.rfind(':');
  if (colon == std::string::npos) return error("listen on {}: must be HOST:PORT or :PORT", address);
  auto host = address.substr(0, colon);
  if (host.size() > 1 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  // The unspecified address of IPv6 takes IPv4 too, but a machine may have no IPv6.
  const std::vector<std::string> hosts =
      host.empty() ? std::vector<std::string>{"::", "0.0.0.0"} : std::vector{host};
  Result<void> last;
  for (const auto& candidate : hosts) {
    addrinfo hints{};
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (const int code = getaddrinfo(candidate.c_str(), address.c_str() + colon + 1, &hints, &found);
        code != 0)
      return error("listen on {}: {}", address, gai_strerror(code));
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
    Fd fd(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int on = 1;
    if (fd) setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_storage bound{};
    socklen_t size = sizeof bound;
    auto* generic = reinterpret_cast<sockaddr*>(&bound);
    if (!fd || bind(fd.get(), found->ai_addr, found->ai_addrlen) != 0 || listen(fd.get(), 128) != 0 ||
        getsockname(fd.get(), generic, &size) != 0) {
      last = Error::system("listen on {}", address);
      continue;
    }
    TRY(add({std::move(fd), {Caller::Kind::network, {}}, {}}));
    return int{ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                                 : reinterpret_cast<sockaddr_in*>(&bound)->sin_port)};
  }
  return last.error();
}

Result<void> Server::listen_guest(const std::string& guest, const std::string& path,
                                  std::optional<gid_t> group) {
  return add(
      {TRY(bind_unix(path, group.value_or(0), group ? 0660 : 0600)), {Caller::Kind::guest, guest}, path});
}

void Server::close_guest(const std::string& guest) {
  const auto is_its = [&guest](const Caller& caller) {
    return caller.kind == Caller::Kind::guest && caller.guest == guest;
  };
  for (auto it = listeners_.begin(); it != listeners_.end();) {
    if (!is_its(it->second.caller)) {
      ++it;
      continue;
    }
    loop_.forget(it->first);
    unlink(it->second.path.c_str());
    it = listeners_.erase(it);
  }
  const std::lock_guard lock(mutex_);
  for (const auto& [fd, caller] : connections_) {
    if (is_its(caller)) shutdown(fd, SHUT_RDWR);
  }
}

void Server::stop() {
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

void Server::accept(int listener_fd) {
  const auto listener = listeners_.find(listener_fd);
  if (listener == listeners_.end()) return;
  Fd fd(accept4(listener_fd, nullptr, nullptr, SOCK_CLOEXEC));
  if (!fd) {
    if (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR) return;
    spdlog::warn("event=accept_failed error={}", glidepod::quoted(strerror(errno)));
    // No descriptor is left. The spare one is used to turn the client away; otherwise the client would wake
    // this loop for ever.
    spare_.reset();
    Fd(accept4(listener_fd, nullptr, nullptr, SOCK_CLOEXEC)).reset();
    spare_.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    return;
  }
  const Caller caller = listener->second.caller;
  std::size_t total = 0, not_owners = 0, of_this = 0;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [other, who] : connections_) {
      ++total;
      not_owners += who.kind != Caller::Kind::owner ? 1 : 0;
      of_this += who.kind == caller.kind && who.guest == caller.guest ? 1 : 0;
    }
    const bool other_may = caller.kind == Caller::Kind::owner || not_owners < not_owners_;
    const bool guest_may = caller.kind != Caller::Kind::guest || of_this < each_guest_;
    if (total < limit_ && other_may && guest_may) {
      connections_.emplace(fd.get(), caller);
      // std::function wants something copyable; the descriptor is owned again in serve().
      threads_->run([this, raw = fd.release(), caller] { serve(Fd(raw), caller); });
      return;
    }
  }
  spdlog::warn("event=connection_refused reason=too-many connections={} of_this_caller={}", total, of_this);
  static constexpr std::string_view k_busy =
      "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\nRetry-After: 1\r\n\r\n";
  send(fd.get(), k_busy.data(), k_busy.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Server::serve(Fd fd, const Caller& caller) {
  answer_all({caller, fd.get()});
  const std::lock_guard lock(mutex_);
  connections_.erase(fd.get());
  fd.reset();  // under the lock: the number may be reused at once
}

void Server::answer_all(const Connection& connection) {
  std::unique_ptr<TlsSession> session;
  if (certificate_ && connection.caller.kind == Caller::Kind::network) {
    auto accepted = certificate_->accept(connection.fd, std::chrono::steady_clock::now() + k_handshake_limit);
    if (!accepted) return;  // probes of load balancers say nothing: no line for each
    session = std::move(*accepted);
  }
  LimitedStream stream(connection.fd, session.get());
  bool more = true;
  while (more && stream.await_request()) {
    Exchange exchange{connection, stream, {}};
    t_exchange = &exchange;
    more = engine_->process(exchange);
    t_exchange = nullptr;
  }
  if (session) session->close();
}

}  // namespace glidepod::http
