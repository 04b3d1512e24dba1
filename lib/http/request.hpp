#pragma once

#include <sys/socket.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/loop.hpp"

namespace glidepod::http {

struct Request {
  std::string method = "GET";
  std::string url;
  std::string unix_socket;  // empty: the URL's host
  std::string ca_file;      // empty: the system's
  std::vector<std::string> headers;
  std::string authorization;  // the header's value; not sent along by a redirect to another origin
  std::string body;
  Milliseconds timeout{0};  // 0: none, for a stream
  std::size_t longest_body = std::size_t{8} << 20;
  std::vector<std::string> wanted_headers;  // of the answer
  // If set, is called with each address before a connection; an address that it refuses is not contacted.
  std::function<bool(const sockaddr& address)> accepts;
};

struct Response {
  int status = 0;
  std::string body;  // empty where a data handler took it
  // The wanted headers that the answer has, by the name in wanted_headers; several of one name are joined by
  // ", ".
  std::map<std::string, std::string, std::less<>> headers;
  std::optional<std::chrono::seconds> retry_after;
};

// Why there is no whole answer: the fact in the Errors of single requests.
struct Lost {
  enum class Why : std::uint8_t {
    broken,     // cut off, closed, no HTTP, or none of the others
    connect,    // nobody was reached
    timeout,    // of the request, or of its connection
    cancelled,  // by who asked
    too_long,   // the answer, for longest_body
    address,    // none that accepts() takes
  };
  Why why = Why::broken;
  bool sent = true;  // false: nothing of the request has left
};

}  // namespace glidepod::http
