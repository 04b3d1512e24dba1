#include "tests/kube/fake_server.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/socket.h>

namespace glidepod::kube {

FakeServer::FakeServer(Loop& loop) : loop_(loop) {
  listener_ = wire::listen_at(socket(), 0600).value();
  REQUIRE(loop_.watch(listener_.get(), EPOLLIN, [this](std::uint32_t) { accept(); }).ok());
}

FakeServer::~FakeServer() {
  loop_.forget(listener_.get());
  for (const auto& [fd, connection] : connections_) loop_.forget(fd);
}

void FakeServer::accept() {
  Fd fd = wire::accept_from(listener_).value();
  if (!fd) return;
  const int number = fd.get();
  connections_[number].fd = std::move(fd);
  REQUIRE(loop_.watch(number, EPOLLIN, [this, number](std::uint32_t) { read(number); }).ok());
}

void FakeServer::close(int fd) {
  loop_.forget(fd);
  connections_.erase(fd);
  if (newest_ == fd) newest_ = -1;
}

void FakeServer::send(int connection, const std::string& bytes) {
  if (!connections_.contains(connection)) return;
  // The socket's buffer takes whatever a test sends.
  if (::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size()))
    close(connection);
}

namespace {

// A body that came in chunks, which are whole.
std::string joined(std::string_view chunks) {
  std::string body;
  for (;;) {
    const auto size = static_cast<std::size_t>(::strtoul(chunks.data(), nullptr, 16));
    if (size == 0) return body;
    chunks.remove_prefix(chunks.find("\r\n") + 2);
    body += chunks.substr(0, size);
    chunks.remove_prefix(size + 2);
  }
}

}  // namespace

void FakeServer::read(int fd) {
  Connection& connection = connections_.at(fd);
  char buffer[4096];
  const ssize_t got = ::recv(fd, buffer, sizeof buffer, 0);
  if (got <= 0) return close(fd);
  connection.incoming.append(buffer, static_cast<std::size_t>(got));
  const auto end = connection.incoming.find("\r\n\r\n");
  if (end == std::string::npos) return;
  Request request;
  request.connection = fd;
  request.headers = connection.incoming.substr(0, end + 2);
  std::size_t length = 0;
  if (const auto at = request.headers.find("Content-Length: "); at != std::string::npos)
    length = static_cast<std::size_t>(::strtoul(request.headers.c_str() + at + 16, nullptr, 10));
  const auto first = request.headers.find(' ');
  request.method = request.headers.substr(0, first);
  request.target = request.headers.substr(first + 1, request.headers.find(' ', first + 1) - first - 1);
  if (request.headers.find("Expect: 100-continue") != std::string::npos && !connection.told) {
    const Reply reply = on_expect ? on_expect(request) : Reply{"HTTP/1.1 100 Continue\r\n\r\n"};
    connection.told = true;
    newest_ = fd;
    if (!reply.bytes.empty()) send(reply.bytes);
    if (reply.close) return close(fd);
  }
  if (connection.incoming.size() < end + 4 + length) return;
  connection.told = false;
  if (request.headers.find("Transfer-Encoding: chunked") != std::string::npos) {
    if (!connection.incoming.ends_with("\r\n0\r\n\r\n")) return;
    request.body = joined(std::string_view(connection.incoming).substr(end + 4));
    length = connection.incoming.size() - end - 4;
  } else {
    request.body = connection.incoming.substr(end + 4, length);
  }
  connection.incoming.erase(0, end + 4 + length);
  requests.push_back(request);
  newest_ = fd;
  const Reply reply = on_request(request);
  if (!reply.bytes.empty()) send(reply.bytes);
  if (reply.close) close(fd);
}

FakeServer::Reply FakeServer::json(int status, const std::string& body, const std::string& headers) {
  return {fmt::format("HTTP/1.1 {} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{}\r\n{}",
                      status, body.size(), headers, body)};
}

FakeServer::Reply FakeServer::stream() {
  return {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"};
}

std::string FakeServer::chunk(const std::string& data) {
  return fmt::format("{:x}\r\n{}\r\n", data.size(), data);
}

}  // namespace glidepod::kube
