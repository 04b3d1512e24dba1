#include "lib/http/limited_stream.hpp"

#include <poll.h>
#include <strings.h>
#include <sys/socket.h>

#include <algorithm>

#include "lib/base/text.hpp"

namespace glidepod::http {
namespace {

constexpr Milliseconds k_idle_limit{60000};
constexpr Milliseconds k_request_limit{30000};  // from a request's first byte to its last
constexpr Milliseconds k_write_limit{20000};    // for a write to make any progress
constexpr Milliseconds k_linger_limit{1000};
constexpr std::size_t k_header_limit = 65536;  // for all of a request except its body

Refusal bad_request(std::string why) {
  return {400, std::move(why)};
}

}  // namespace

int left_until(SteadyTime deadline) {
  const auto left = std::chrono::ceil<Milliseconds>(deadline - std::chrono::steady_clock::now());
  return std::max(0, static_cast<int>(left.count()));
}

bool LimitedStream::await_request() {
  in_step_ = false;
  budget_ = k_body_limit + k_header_limit;
  deadline_ = std::chrono::steady_clock::now() + k_idle_limit;
  const bool came = begin_ < end_ || fill();
  deadline_ = std::chrono::steady_clock::now() + k_request_limit;
  return came;
}

std::optional<Refusal> LimitedStream::check_framing(const httplib::Request& request,
                                                    std::uint64_t longest_upload) {
  const bool uploads = longest_upload > 0 && request.method == "PUT";
  const auto longest = static_cast<std::int64_t>(uploads ? longest_upload : k_body_limit);
  const auto lengths = request.get_header_value_count("Content-Length");
  const auto encodings = request.get_header_value_count("Transfer-Encoding");
  std::int64_t length = 0;
  if (lengths + encodings > 1) return bad_request("the length of the request's body is told twice");
  if (lengths == 1) {
    const auto number = parse_integer(request.get_header_value("Content-Length"));
    if (!number || number.value() < 0) return bad_request("invalid Content-Length");
    length = number.value();
    if (length > longest) return Refusal{413, "the request is too long"};
  }
  if (encodings == 1 && uploads) return Refusal{411, "the request needs a Content-Length"};
  if (encodings == 1 && strcasecmp(request.get_header_value("Transfer-Encoding").c_str(), "chunked") != 0) {
    return bad_request("the only Transfer-Encoding accepted here is chunked");
  }
  const bool takes_body = request.method == "POST" || request.method == "PUT" || request.method == "PATCH";
  if (takes_body && lengths + encodings == 0) {
    return Refusal{411, "the request needs a Content-Length"};
  }
  // The parser would leave this body where it is, and take it for the next request.
  if (!takes_body && request.method != "DELETE" && (length > 0 || encodings > 0)) {
    return bad_request(request.method + " takes no body");
  }
  in_step_ = !uploads || length == 0;
  return std::nullopt;
}

void LimitedStream::begin_upload(std::uint64_t size, Milliseconds grace) {
  budget_ = size;
  uploaded_ = 0;
  upload_due_ = std::chrono::steady_clock::now() + grace;
}

ssize_t LimitedStream::read_upload(char* target, std::size_t size) {
  deadline_ = upload_due_ + std::chrono::seconds(uploaded_ / k_least_rate);
  std::size_t count = 0;
  if (begin_ < end_) {
    count = std::min(size, end_ - begin_);
    std::copy_n(buffer_.data() + begin_, count, target);
    begin_ += count;
  } else {
    const ssize_t got = receive(target, size);
    if (got <= 0) return got;
    count = static_cast<std::size_t>(got);
  }
  uploaded_ += count;
  return static_cast<ssize_t>(count);
}

void LimitedStream::linger() {
  if (session_) session_->close();
  shutdown(fd_, SHUT_WR);
  deadline_ = std::chrono::steady_clock::now() + k_linger_limit;
  budget_ = 8 * k_body_limit;
  while (fill()) {
  }
}

bool LimitedStream::is_writable() const {
  pollfd wait{fd_, POLLOUT, 0};
  return poll(&wait, 1, static_cast<int>(k_write_limit.count())) == 1 &&
         !(wait.revents & (POLLERR | POLLHUP));
}

ssize_t LimitedStream::read(char* target, std::size_t size) {
  if (begin_ == end_ && !fill()) return -1;
  const std::size_t count = std::min(size, end_ - begin_);
  std::copy_n(buffer_.data() + begin_, count, target);
  begin_ += count;
  return static_cast<ssize_t>(count);
}

ssize_t LimitedStream::write(const char* data, std::size_t size) {
  if (session_) return session_->write(data, size, std::chrono::steady_clock::now() + k_write_limit);
  while (true) {
    const ssize_t sent = send(fd_, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return sent;
    if (errno == EINTR) continue;
    if (errno != EAGAIN || !is_writable()) return -1;
  }
}

void LimitedStream::get_remote_ip_and_port(std::string& ip, int& port) const {
  ip.clear();
  port = 0;
}

ssize_t LimitedStream::receive(char* target, std::size_t size) {
  if (session_) return session_->read(target, size, deadline_);
  pollfd wait{fd_, POLLIN, 0};
  int ready = 0;
  do {
    ready = poll(&wait, 1, left_until(deadline_));
  } while (ready < 0 && errno == EINTR);
  return ready == 1 ? recv(fd_, target, size, 0) : -1;
}

bool LimitedStream::fill() {
  if (budget_ == 0) return false;
  const ssize_t got = receive(buffer_.data(), std::min(buffer_.size(), budget_));
  if (got <= 0) return false;
  begin_ = 0;
  end_ = static_cast<std::size_t>(got);
  budget_ -= end_;
  return true;
}

}  // namespace glidepod::http
