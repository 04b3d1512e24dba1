#include "lib/http/transport.hpp"

#include <random>
#include <set>
#include <utility>

#include "lib/http/easy.hpp"

namespace glidepod::http {

struct Transport::Curl {
  CURLM* multi = nullptr;
  std::set<int> watched;
  ~Curl() {
    if (multi) curl_multi_cleanup(multi);
  }
};

struct Transport::Transfer {
  Transfer(CURLM* multi_handle, Request request, Handlers told)
      : multi(multi_handle),
        owner(curl_easy_init()),
        easy(owner.get(), std::move(request)),
        handlers(std::move(told)) {
    curl_easy_setopt(owner.get(), CURLOPT_PRIVATE, this);
    curl_multi_add_handle(multi, owner.get());
  }
  ~Transfer() { curl_multi_remove_handle(multi, owner.get()); }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  struct Free {
    void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
  };
  CURLM* multi;
  std::unique_ptr<CURL, Free> owner;
  Easy
      easy;  // handlers run after curl has returned: they may cancel, which curl forbids inside its callbacks
  Handlers handlers;
  std::optional<CURLcode> result;  // set once the request is over
};

class Transport::Call : public Operation {
 public:
  Call(Transport& transport, std::uint64_t id) : transport_(transport), id_(id) {}
  ~Call() override { transport_.transfers_.erase(id_); }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  Transport& transport_;
  std::uint64_t id_;
};

Transport::Transport(Loop& loop)
    : loop_(loop), curl_(std::make_unique<Curl>()), random_state_(std::random_device()()) {}

Transport::~Transport() {
  *alive_ = false;
  transfers_.clear();
  for (const int fd : curl_->watched) loop_.forget(fd);
  curl_->watched.clear();
  loop_.cancel(timer_);
}

Result<std::unique_ptr<Transport>> Transport::create(Loop& loop) {
  TRY(start_curl());
  std::unique_ptr<Transport> transport(new Transport(loop));
  CURLM* multi = transport->curl_->multi = curl_multi_init();
  if (!multi) return error("libcurl: no memory");
  const auto on_socket = +[](CURL*, curl_socket_t fd, int what, void* user, void*) -> int {
    auto& self = *static_cast<Transport*>(user);
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
    static_cast<Transport*>(user)->set_timer(milliseconds);
    return 0;
  };
  curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
  curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, transport.get());
  curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer);
  curl_multi_setopt(multi, CURLMOPT_TIMERDATA, transport.get());
  curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, 2L);
  return transport;
}

double Transport::random() {
  std::minstd_rand generator(static_cast<std::minstd_rand::result_type>(random_state_));
  random_state_ = generator();
  return static_cast<double>(random_state_) / static_cast<double>(std::minstd_rand::max());
}

void Transport::set_timer(long milliseconds) {
  loop_.cancel(timer_);
  timer_ = 0;
  if (milliseconds >= 0)
    timer_ = loop_.after(Milliseconds(milliseconds), [this] {
      timer_ = 0;
      act(CURL_SOCKET_TIMEOUT, 0);
    });
}

std::unique_ptr<Operation> Transport::start(Request request, Handlers handlers) {
  const std::uint64_t id = ++last_id_;
  transfers_.emplace(id, std::make_unique<Transfer>(curl_->multi, std::move(request), std::move(handlers)));
  return std::make_unique<Call>(*this, id);
}

void Transport::act(int fd, int events) {
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

void Transport::deliver() {
  const auto alive = alive_;
  std::vector<std::uint64_t> ids;
  for (const auto& [id, transfer] : transfers_) ids.push_back(id);
  for (const std::uint64_t id : ids) {
    auto found = transfers_.find(id);
    if (found == transfers_.end()) continue;
    Transfer& live = *found->second;
    if (live.handlers.data && !live.easy.body().empty() && live.easy.status() == 200) {
      const std::string data = std::exchange(live.easy.body(), {});
      const auto handler = live.handlers.data;
      handler(data);
      if (!*alive) return;
      found = transfers_.find(id);
      if (found == transfers_.end()) continue;
    }
    if (!found->second->result) continue;
    Transfer& over = *found->second;
    const auto done = std::move(over.handlers.done);
    auto outcome = over.easy.outcome(*over.result);
    transfers_.erase(found);
    done(std::move(outcome));
    if (!*alive) return;
  }
}

}  // namespace glidepod::http
