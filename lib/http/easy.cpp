#include "lib/http/easy.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace glidepod::http {
namespace {
constexpr std::size_t k_longest_headers = std::size_t{128} << 10;
}

Result<void> start_curl() {
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (initialised != CURLE_OK) return error("libcurl: {}", curl_easy_strerror(initialised));
  return {};
}

Easy::Easy(CURL* handle, Request request) : handle_(handle), request_(std::move(request)) {
  const auto set = [this](CURLoption option, auto value) { curl_easy_setopt(handle_, option, value); };
  set(CURLOPT_URL, request_.url.c_str());
  if (!request_.unix_socket.empty()) set(CURLOPT_UNIX_SOCKET_PATH, request_.unix_socket.c_str());
  if (!request_.ca_file.empty()) {
    set(CURLOPT_CAINFO, request_.ca_file.c_str());
    // The default of the first is a day, but a cluster may replace its authorities at any time. The second
    // leaves out the system's authorities.
    set(CURLOPT_CA_CACHE_TIMEOUT, 0L);
    set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));
  }
  const auto header = [this](const std::string& line) {
    headers_ = curl_slist_append(headers_, line.c_str());
  };
  for (const auto& line : request_.headers) header(line);
  if (!request_.authorization.empty()) header("Authorization: " + request_.authorization);
  header("User-Agent: glidepod/" GLIDEPOD_VERSION);
  header(request_.go_ahead.count() > 0 ? "Expect: 100-continue" : "Expect:");
  set(CURLOPT_HTTPHEADER, headers_);
  set(CURLOPT_CUSTOMREQUEST, request_.method.c_str());
  if (!request_.body.empty() || request_.method == "POST") {
    set(CURLOPT_POSTFIELDS, request_.body.c_str());
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
  }
  if (request_.method == "HEAD") set(CURLOPT_NOBODY, 1L);
  if (request_.file) upload_file();
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  // A proxy in the environment is for the world outside, not for the cluster's own API.
  set(CURLOPT_PROXY, "");
  set(CURLOPT_NOSIGNAL, 1L);
  // When the request is over, a name that is still being looked up is left to its thread. Otherwise curl
  // waits for it, 10 s and more, in a loop that has other work.
  set(CURLOPT_QUICK_EXIT, 1L);
  // The kernel notices a dead peer of a stream by itself, without waking this process.
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_BUFFERSIZE, 16384L);
  set(CURLOPT_CONNECTTIMEOUT_MS, 10'000L);
  set(CURLOPT_TIMEOUT_MS, static_cast<long>(request_.timeout.count()));
  set(CURLOPT_WRITEFUNCTION, &Easy::write);
  set(CURLOPT_WRITEDATA, this);
  set(CURLOPT_HEADERFUNCTION, &Easy::count_header);
  set(CURLOPT_HEADERDATA, this);
  set(CURLOPT_OPENSOCKETFUNCTION, &Easy::open_socket);
  set(CURLOPT_OPENSOCKETDATA, this);
  set(CURLOPT_PREREQFUNCTION, &Easy::before_sending);
  set(CURLOPT_PREREQDATA, this);
  set(CURLOPT_PROTOCOLS_STR, "http,https");
}

Easy::~Easy() {
  curl_slist_free_all(headers_);
}

int Easy::status() const {
  long code = 0;
  curl_easy_getinfo(handle_, CURLINFO_RESPONSE_CODE, &code);
  return static_cast<int>(code);
}

Result<Response> Easy::outcome(CURLcode result) {
  using Why = Lost::Why;
  const auto lost = [this](Why why, std::string words) {
    return Error(std::move(words)).with(Lost{why, sent_});
  };
  if (too_long_)
    return lost(Why::too_long, fmt::format("answer longer than {} bytes", request_.longest_body));
  if (result != CURLE_OK && refused_) return lost(Why::address, "an address that must not be contacted");
  if (again_) return lost(Why::broken, "the connection was closed without an answer");
  if (result != CURLE_OK) {
    const bool connect = result == CURLE_COULDNT_CONNECT || result == CURLE_COULDNT_RESOLVE_HOST;
    return lost(result == CURLE_OPERATION_TIMEDOUT    ? Why::timeout
                : result == CURLE_ABORTED_BY_CALLBACK ? Why::cancelled
                : connect                             ? Why::connect
                                                      : Why::broken,
                curl_easy_strerror(result));
  }
  Response response{status(), std::move(body_), {}, {}};
  for (const auto& name : request_.wanted_headers) {
    curl_header* header = nullptr;
    for (std::size_t i = 0;
         curl_easy_header(handle_, name.c_str(), i, CURLH_HEADER, -1, &header) == CURLHE_OK; ++i)
      response.headers[name] += (i == 0 ? "" : ", ") + std::string(header->value);
  }
  curl_off_t wait = 0;  // curl reads both forms of Retry-After
  if (curl_easy_getinfo(handle_, CURLINFO_RETRY_AFTER, &wait) == CURLE_OK && wait > 0)
    response.retry_after = std::chrono::seconds(wait);
  return response;
}

std::size_t Easy::write(char* data, std::size_t, std::size_t size, void* user) {
  auto& self = *static_cast<Easy*>(user);
  if (self.taker) return self.taker({data, size}) ? size : 0;
  self.body_.append(data, size);
  self.too_long_ = self.body_.size() > self.request_.longest_body;
  return self.too_long_ ? 0 : size;
}

void Easy::upload_file() {
  const auto set = [this](CURLoption option, auto value) { curl_easy_setopt(handle_, option, value); };
  set(CURLOPT_UPLOAD, 1L);
  set(CURLOPT_INFILESIZE_LARGE, request_.file_size ? static_cast<curl_off_t>(*request_.file_size) : -1);
  set(CURLOPT_READFUNCTION, &Easy::read_file);
  set(CURLOPT_READDATA, this);
  set(CURLOPT_UPLOAD_BUFFERSIZE, 262'144L);
  if (request_.go_ahead.count() > 0)
    set(CURLOPT_EXPECT_100_TIMEOUT_MS, static_cast<long>(request_.go_ahead.count()));
  // Who waits long for the server to ask wants to know when it is gone.
  set(CURLOPT_TCP_KEEPIDLE, 15L);
  set(CURLOPT_TCP_KEEPINTVL, 5L);
}

std::size_t Easy::read_file(char* target, std::size_t, std::size_t size, void* user) {
  auto& self = *static_cast<Easy*>(user);
  const int file = self.request_.file->get();
  const auto whole = self.request_.file_size;
  const auto left = whole ? *whole - self.file_sent_ : size;
  ssize_t got = 0;
  do {
    got = whole ? ::pread(file, target, std::min<std::uint64_t>(size, left),
                          static_cast<off_t>(self.file_sent_))
                : ::read(file, target, size);
  } while (got < 0 && errno == EINTR);
  if (got < 0 || (got == 0 && whole && left > 0)) return CURL_READFUNC_ABORT;  // it became shorter
  self.file_sent_ += static_cast<std::uint64_t>(got);
  return static_cast<std::size_t>(got);
}

// Only counts the bytes of the headers, since curl itself keeps all headers that come.
std::size_t Easy::count_header(char*, std::size_t, std::size_t size, void* user) {
  auto& self = *static_cast<Easy*>(user);
  self.header_bytes_ += size;
  if (self.header_bytes_ > k_longest_headers) self.too_long_ = true;
  return self.too_long_ ? 0 : size;
}

// curl repeats a request by itself when a kept connection turns out dead, though the server may have acted
// before it closed it. The caller must know of that, so it is an error here.
int Easy::before_sending(void* user, char*, char*, int, int) {
  auto& self = *static_cast<Easy*>(user);
  self.again_ = self.sent_ && self.request_.method != "GET";
  self.sent_ = true;
  return self.again_ ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

curl_socket_t Easy::open_socket(void* user, curlsocktype, curl_sockaddr* address) {
  auto& self = *static_cast<Easy*>(user);
  if (self.request_.accepts && !self.request_.accepts(address->addr)) {
    self.refused_ = true;
    return CURL_SOCKET_BAD;
  }
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

}  // namespace glidepod::http
