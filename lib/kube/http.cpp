#include "lib/kube/http.hpp"

#include <curl/curl.h>
#include <unistd.h>

#include <set>
#include <utility>

namespace glidepod::kube {
namespace {
constexpr std::size_t k_longest_headers = std::size_t{128} << 10;
}

struct Http::Curl {
  CURLM* multi = nullptr;
  std::set<int> watched;
  ~Curl() {
    if (multi) curl_multi_cleanup(multi);
  }
};

struct Http::Transfer {
  Http* http = nullptr;
  CURL* easy = nullptr;
  curl_slist* headers = nullptr;
  HttpRequest request;
  Handlers handlers;
  std::string body;
  std::size_t header_bytes = 0;
  bool too_long = false;
  bool refused = false;  // an address
  bool sent = false;
  std::optional<CURLcode> result;  // once it is over

  ~Transfer() {
    if (easy) {
      curl_multi_remove_handle(http->curl_->multi, easy);
      curl_easy_cleanup(easy);
    }
    curl_slist_free_all(headers);
  }
  long status() const {
    long code = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &code);
    return code;
  }
  Result<HttpResponse> outcome() {
    if (too_long) return Error(fmt::format("answer longer than {} bytes", request.longest_body), EMSGSIZE);
    if (*result != CURLE_OK && refused) return Error("an address that must not be contacted", EACCES);
    if (*result == CURLE_ABORTED_BY_CALLBACK) return error("the connection was closed without an answer");
    if (*result != CURLE_OK) return error("{}", curl_easy_strerror(*result));
    HttpResponse response{static_cast<int>(status()), std::move(body), {}, {}};
    for (const auto& name : request.wanted_headers) {
      curl_header* header = nullptr;
      for (std::size_t i = 0; curl_easy_header(easy, name.c_str(), i, CURLH_HEADER, -1, &header) == CURLHE_OK;
           ++i)
        response.headers[name] += (i == 0 ? "" : ", ") + std::string(header->value);
    }
    curl_off_t wait = 0;  // curl reads both forms of Retry-After
    if (curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &wait) == CURLE_OK && wait > 0)
      response.retry_after = std::chrono::seconds(wait);
    return response;
  }
  static std::size_t write(char* data, std::size_t, std::size_t size, void* user) {
    auto& self = *static_cast<Transfer*>(user);
    // Handlers run after curl has returned: they may cancel, which curl forbids inside its callbacks.
    self.body.append(data, size);
    self.too_long = self.body.size() > self.request.longest_body;
    return self.too_long ? 0 : size;
  }
  // Counts only: curl keeps all the headers that it is sent.
  static std::size_t count_header(char*, std::size_t, std::size_t size, void* user) {
    auto& self = *static_cast<Transfer*>(user);
    self.header_bytes += size;
    if (self.header_bytes > k_longest_headers) self.too_long = true;
    return self.too_long ? 0 : size;
  }
  // curl sends a request again by itself when a connection that it had kept turns out dead, though the server
  // may have closed it after acting. Who asked for a change must know, so that is an error.
  static int before_sending(void* user, char*, char*, int, int) {
    auto& self = *static_cast<Transfer*>(user);
    if (std::exchange(self.sent, true) && self.request.method != "GET") return CURL_PREREQFUNC_ABORT;
    return CURL_PREREQFUNC_OK;
  }
  static curl_socket_t open_socket(void* user, curlsocktype, curl_sockaddr* address) {
    auto& self = *static_cast<Transfer*>(user);
    if (self.request.accepts && !self.request.accepts(address->addr)) {
      self.refused = true;
      return CURL_SOCKET_BAD;
    }
    return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  }
};

Http::Http(Loop& loop) : loop_(loop), curl_(std::make_unique<Curl>()) {}

Http::~Http() {
  *alive_ = false;
  transfers_.clear();
  for (const int fd : curl_->watched) loop_.forget(fd);
  curl_->watched.clear();
  loop_.cancel(timer_);
}

Result<std::unique_ptr<Http>> Http::create(Loop& loop) {
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (initialised != CURLE_OK) return error("libcurl: {}", curl_easy_strerror(initialised));
  std::unique_ptr<Http> http(new Http(loop));
  CURLM* multi = http->curl_->multi = curl_multi_init();
  if (!multi) return error("libcurl: no memory");
  const auto on_socket = +[](CURL*, curl_socket_t fd, int what, void* user, void*) -> int {
    auto& self = *static_cast<Http*>(user);
    const bool known = self.curl_->watched.contains(fd);
    if (what == CURL_POLL_REMOVE) {
      if (known) self.loop_.forget(fd);
      self.curl_->watched.erase(fd);
      return 0;
    }
    const std::uint32_t events = ((what & CURL_POLL_IN) ? static_cast<std::uint32_t>(EPOLLIN) : 0u) |
                                 ((what & CURL_POLL_OUT) ? static_cast<std::uint32_t>(EPOLLOUT) : 0u);
    if (known) return self.loop_.change(fd, events) ? 0 : -1;
    const auto watched = self.loop_.watch(fd, events, [&self, fd](std::uint32_t got) {
      self.act(fd, ((got & EPOLLIN) ? CURL_CSELECT_IN : 0) | ((got & EPOLLOUT) ? CURL_CSELECT_OUT : 0) |
                       ((got & (EPOLLERR | EPOLLHUP)) ? CURL_CSELECT_ERR : 0));
    });
    if (watched) self.curl_->watched.insert(fd);
    return watched ? 0 : -1;
  };
  const auto on_timer = +[](CURLM*, long milliseconds, void* user) -> int {
    static_cast<Http*>(user)->set_timer(milliseconds);
    return 0;
  };
  curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
  curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, http.get());
  curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer);
  curl_multi_setopt(multi, CURLMOPT_TIMERDATA, http.get());
  curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, 2L);
  return http;
}

void Http::set_timer(long milliseconds) {
  loop_.cancel(timer_);
  timer_ = 0;
  if (milliseconds >= 0)
    timer_ = loop_.after(Milliseconds(milliseconds), [this] {
      timer_ = 0;
      act(CURL_SOCKET_TIMEOUT, 0);
    });
}

std::unique_ptr<Http::Call> Http::start(HttpRequest request, Handlers handlers) {
  const std::uint64_t id = ++last_id_;
  auto transfer = std::make_unique<Transfer>();
  Transfer& t = *transfer;
  t.http = this;
  t.request = std::move(request);
  t.handlers = std::move(handlers);
  t.easy = curl_easy_init();
  curl_easy_setopt(t.easy, CURLOPT_URL, t.request.url.c_str());
  if (!t.request.unix_socket.empty())
    curl_easy_setopt(t.easy, CURLOPT_UNIX_SOCKET_PATH, t.request.unix_socket.c_str());
  if (!t.request.ca_file.empty()) curl_easy_setopt(t.easy, CURLOPT_CAINFO, t.request.ca_file.c_str());
  for (const auto& header : t.request.headers) t.headers = curl_slist_append(t.headers, header.c_str());
  t.headers = curl_slist_append(t.headers, "Expect:");
  curl_easy_setopt(t.easy, CURLOPT_HTTPHEADER, t.headers);
  curl_easy_setopt(t.easy, CURLOPT_CUSTOMREQUEST, t.request.method.c_str());
  if (!t.request.body.empty()) {
    curl_easy_setopt(t.easy, CURLOPT_POSTFIELDS, t.request.body.c_str());
    curl_easy_setopt(t.easy, CURLOPT_POSTFIELDSIZE, static_cast<long>(t.request.body.size()));
  }
  curl_easy_setopt(t.easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  // A proxy of the environment is for the world outside, never for the cluster's own API.
  curl_easy_setopt(t.easy, CURLOPT_PROXY, "");
  curl_easy_setopt(t.easy, CURLOPT_NOSIGNAL, 1L);
  // The kernel notices a stream whose peer is gone; this process need not wake for it.
  curl_easy_setopt(t.easy, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(t.easy, CURLOPT_BUFFERSIZE, 16384L);
  curl_easy_setopt(t.easy, CURLOPT_CONNECTTIMEOUT_MS, 10'000L);
  curl_easy_setopt(t.easy, CURLOPT_TIMEOUT_MS, static_cast<long>(t.request.timeout.count()));
  curl_easy_setopt(t.easy, CURLOPT_WRITEFUNCTION, &Transfer::write);
  curl_easy_setopt(t.easy, CURLOPT_WRITEDATA, &t);
  curl_easy_setopt(t.easy, CURLOPT_HEADERFUNCTION, &Transfer::count_header);
  curl_easy_setopt(t.easy, CURLOPT_HEADERDATA, &t);
  curl_easy_setopt(t.easy, CURLOPT_PREREQFUNCTION, &Transfer::before_sending);
  curl_easy_setopt(t.easy, CURLOPT_PREREQDATA, &t);
  curl_easy_setopt(t.easy, CURLOPT_OPENSOCKETFUNCTION, &Transfer::open_socket);
  curl_easy_setopt(t.easy, CURLOPT_OPENSOCKETDATA, &t);
  curl_easy_setopt(t.easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(t.easy, CURLOPT_PRIVATE, &t);
  transfers_.emplace(id, std::move(transfer));
  curl_multi_add_handle(curl_->multi, t.easy);
  return std::make_unique<Call>(*this, id);
}

void Http::cancel(std::uint64_t id) {
  transfers_.erase(id);
}

void Http::act(int fd, int events) {
  int running = 0;
  curl_multi_socket_action(curl_->multi, fd, events, &running);
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(curl_->multi, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    Transfer* transfer = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
    transfer->result = message->data.result;
  }
  deliver();
}

void Http::deliver() {
  const auto alive = alive_;
  std::vector<std::uint64_t> ids;
  for (const auto& [id, transfer] : transfers_) ids.push_back(id);
  for (const std::uint64_t id : ids) {
    auto found = transfers_.find(id);
    if (found == transfers_.end()) continue;
    if (found->second->handlers.data && !found->second->body.empty() && found->second->status() == 200) {
      const std::string data = std::exchange(found->second->body, {});
      const auto handler = found->second->handlers.data;
      handler(data);
      if (!*alive) return;
      found = transfers_.find(id);
      if (found == transfers_.end()) continue;
    }
    if (!found->second->result) continue;
    Transfer& transfer = *found->second;
    const auto done = std::move(transfer.handlers.done);
    auto outcome = transfer.outcome();
    transfers_.erase(found);
    done(std::move(outcome));
    if (!*alive) return;
  }
}

}  // namespace glidepod::kube
