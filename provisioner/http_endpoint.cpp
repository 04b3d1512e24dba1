#include "provisioner/http_endpoint.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "lib/base/text.hpp"

namespace glidepod::provisioner {

namespace {

constexpr std::size_t k_connections = 32;
constexpr std::size_t k_longest_request = 8192;
constexpr Milliseconds k_time_limit{10'000};

std::string_view reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 503:
      return "Service Unavailable";
    default:
      return "Error";
  }
}

std::string response(const HttpEndpoint::Answer& answer, bool with_body) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\n"
      "Connection: close\r\n\r\n{}",
      answer.status, reason_of(answer.status), answer.body.size(), with_body ? answer.body : "");
}

}  // namespace

Result<std::unique_ptr<HttpEndpoint>> HttpEndpoint::create(Loop& loop, const std::string& address,
                                                           Handler handler) {
  std::unique_ptr<HttpEndpoint> endpoint(new HttpEndpoint(loop, std::move(handler)));
  TRY(endpoint->listen(address).in("listen on " + address));
  return endpoint;
}

HttpEndpoint::~HttpEndpoint() {
  while (!connections_.empty()) close(connections_.begin()->first);
  if (listener_) loop_.forget(listener_.get());
}

Result<void> HttpEndpoint::listen(const std::string& address) {
  const auto colon = address.rfind(':');
  if (colon == std::string::npos) return error("must be HOST:PORT or :PORT");
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
    if (const int code = ::getaddrinfo(candidate.c_str(), address.c_str() + colon + 1, &hints, &found);
        code != 0)
      return error("{}", ::gai_strerror(code));
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
    Fd fd(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int on = 1;
    if (fd) ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_storage bound{};
    socklen_t size = sizeof bound;
    auto* generic = reinterpret_cast<sockaddr*>(&bound);
    if (!fd || ::bind(fd.get(), found->ai_addr, found->ai_addrlen) != 0 || ::listen(fd.get(), 32) != 0 ||
        ::getsockname(fd.get(), generic, &size) != 0) {
      last = Error::system("bind");
      continue;
    }
    port_ = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                              : reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
    listener_ = std::move(fd);
    return loop_.watch(listener_.get(), EPOLLIN, [this](std::uint32_t) { accept(); });
  }
  return last;
}

void HttpEndpoint::accept() {
  Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd || connections_.size() >= k_connections) return;
  const int number = fd.get();
  if (!loop_.watch(number, EPOLLIN, [this, number](std::uint32_t events) { act(number, events); })) return;
  auto& connection = connections_[number];
  connection.fd = std::move(fd);
  connection.timer = loop_.after(k_time_limit, [this, number] {
    connections_.at(number).timer = 0;
    close(number);
  });
}

void HttpEndpoint::act(int fd, std::uint32_t events) {
  if (!connections_.at(fd).out.empty()) return write(fd);
  if ((events & EPOLLIN) != 0) return read(fd);
  close(fd);
}

void HttpEndpoint::read(int fd) {
  auto& connection = connections_.at(fd);
  char buffer[2048];
  const auto got = ::recv(fd, buffer, sizeof buffer, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return close(fd);
  connection.in.append(buffer, static_cast<std::size_t>(got));
  if (connection.in.size() > k_longest_request) return close(fd);
  if (connection.in.find("\r\n\r\n") == std::string::npos) return;

  const auto parts = split(connection.in.substr(0, connection.in.find("\r\n")), ' ');
  if (parts.size() != 3 || !parts[2].starts_with("HTTP/1.")) {
    connection.out = response({400, "not an HTTP request\n"}, true);
  } else if (parts[0] != "GET" && parts[0] != "HEAD") {
    connection.out = response({405, "only GET and HEAD\n"}, true);
  } else {
    const auto& target = parts[1];
    connection.out = response(handler_(target.substr(0, target.find('?'))), parts[0] == "GET");
  }
  write(fd);
}

void HttpEndpoint::write(int fd) {
  auto& connection = connections_.at(fd);
  const auto sent = ::send(fd, connection.out.data(), connection.out.size(), MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN && errno != EINTR) return close(fd);
  if (sent > 0) connection.out.erase(0, static_cast<std::size_t>(sent));
  if (connection.out.empty()) return close(fd);
  if (!loop_.change(fd, EPOLLOUT)) close(fd);
}

void HttpEndpoint::close(int fd) {
  const auto connection = connections_.find(fd);
  if (connection == connections_.end()) return;
  if (connection->second.timer != 0) loop_.cancel(connection->second.timer);
  loop_.forget(fd);
  connections_.erase(connection);
}

}  // namespace glidepod::provisioner
