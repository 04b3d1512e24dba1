#pragma once

#include <curl/curl.h>

#include <string>

#include "lib/base/result.hpp"
#include "lib/http/request.hpp"

namespace glidepod::http {

// One request on a handle of libcurl. This is the only place that sets up such a handle. The object must not
// be moved while curl has it.
class Easy {
 public:
  // The caller owns the handle.
  Easy(CURL* handle, Request request);
  ~Easy();
  Easy(const Easy&) = delete;
  Easy& operator=(const Easy&) = delete;

  CURL* handle() const { return handle_; }
  const Request& request() const { return request_; }
  int status() const;
  // The part of the body that has arrived.
  std::string& body() { return body_; }
  // The outcome; to be called once curl is done. An Error has a Lost as its fact.
  Result<Response> outcome(CURLcode result);

  // If set, curl calls this with each piece of the body, and the body is not kept. False ends the request.
  std::function<bool(std::string_view)> taker;

 private:
  static std::size_t write(char* data, std::size_t, std::size_t size, void* user);
  void upload_file();
  static std::size_t read_file(char* target, std::size_t, std::size_t size, void* user);
  static std::size_t count_header(char*, std::size_t, std::size_t size, void* user);
  static int before_sending(void* user, char*, char*, int, int);
  static curl_socket_t open_socket(void* user, curlsocktype, curl_sockaddr* address);

  CURL* handle_;
  curl_slist* headers_ = nullptr;
  Request request_;
  std::string body_;
  std::size_t header_bytes_ = 0;
  std::uint64_t file_sent_ = 0;
  bool too_long_ = false, refused_ = false, sent_ = false, again_ = false;
};

// Makes libcurl ready for use.
Result<void> start_curl();

}  // namespace glidepod::http
