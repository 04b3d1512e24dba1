#pragma once

#include <sys/socket.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/fd.hpp"
#include "lib/base/loop.hpp"

namespace glidepod::http {

struct Request {
  std::string method = "GET";
  std::string url;
  std::string unix_socket;  // empty: the URL's host
  std::string ca_file;      // empty: the system's
  std::vector<std::string> headers;
  std::string authorization;  // the header's value; a redirect to another origin does not send it along
  std::string body;
  // If set, the body is the first file_size bytes of this file, which is read as they are sent; without a
  // size, all that comes by this pipe or socket. For the latter the thread waits: not on a Loop.
  std::shared_ptr<const Fd> file;
  std::optional<std::uint64_t> file_size = 0;
  // If not 0, the file is sent once the server asks for it, which may take so long.
  Milliseconds go_ahead{0};
  Milliseconds timeout{0};  // 0: none, for a stream
  std::size_t longest_body = std::size_t{8} << 20;
  std::vector<std::string> wanted_headers;  // headers of the answer to return
  // If set, it is called with each address before a connection. An address that it refuses is not contacted.
  std::function<bool(const sockaddr& address)> accepts;
};

struct Response {
  int status = 0;
  std::string body;  // empty if a data handler took it
  // The wanted headers that the answer has, by their names in wanted_headers. Several headers of one name are
  // joined by ", ".
  std::map<std::string, std::string, std::less<>> headers;
  std::optional<std::chrono::seconds> retry_after;
};

// Why there is no whole answer. This is the fact in the Errors of single requests.
struct Lost {
  enum class Why : std::uint8_t {
    broken,     // the answer was cut off or is no HTTP, or any other cause
    connect,    // no server was reached
    timeout,    // the request, or its connection, took too long
    cancelled,  // the caller ended the request
    too_long,   // the answer is longer than longest_body
    address,    // accepts() takes no address of the host
  };
  Why why = Why::broken;
  bool sent = true;  // false: nothing of the request was sent
};

}  // namespace glidepod::http
