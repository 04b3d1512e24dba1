#include "lib/kube/client.hpp"

namespace glidepod::kube {
namespace {

constexpr std::size_t k_longest_line = std::size_t{8} << 20;
constexpr Milliseconds k_get_timeout{15'000};

// GET where there is no version to start from, then streams one after the other.
class PodWatch : public Client::Operation {
 public:
  PodWatch(Client& client, PodName pod, std::string version, Client::WatchHandlers handlers)
      : client_(client), pod_(std::move(pod)), version_(std::move(version)), handlers_(std::move(handlers)) {
    next();
  }
  ~PodWatch() override {
    *alive_ = false;
    client_.loop().cancel(timer_);
  }
  PodWatch(const PodWatch&) = delete;
  PodWatch& operator=(const PodWatch&) = delete;

 private:
  void next() {
    line_.clear();
    if (version_.empty())
      get();
    else
      stream();
  }

  void get() {
    auto request =
        client_.request("GET", fmt::format("/api/v1/namespaces/{}/pods/{}", pod_.space, pod_.name));
    request.timeout = k_get_timeout;
    call_ = client_.http().start(std::move(request), {{}, [this](Result<HttpResponse> response) {
                                                        got(body_of(std::move(response)));
                                                      }});
  }

  void got(std::variant<std::string, Failure> answer) {
    if (auto* failure = std::get_if<Failure>(&answer)) return failed(std::move(*failure));
    const auto pod = parse_pod(std::get<std::string>(answer));
    if (!pod) return failed({Failure::Kind::nonsense, 200, {}, pod.error().message(), {}});
    failures_ = 0;
    version_ = pod->resource_version;
    const auto alive = alive_;
    tell(pod.value());
    if (*alive) next();
  }

  // The handler may destroy this, and with it the handler.
  void tell(const Pod& pod) {
    const auto changed = handlers_.changed;
    changed(pod);
  }

  void stream() {
    auto request =
        client_.request("GET", fmt::format("/api/v1/namespaces/{}/pods?watch=true&allowWatchBookmarks=true"
                                           "&fieldSelector=metadata.name%3D{}&resourceVersion={}",
                                           pod_.space, pod_.name, version_));
    events_ = 0;
    call_ = client_.http().start(
        std::move(request), {[this](std::string_view data) { take(data); },
                             [this](Result<HttpResponse> response) {
                               auto answer = body_of(std::move(response));
                               if (auto* failure = std::get_if<Failure>(&answer)) {
                                 // What was cut off may have lost something on its way; what was refused as
                                 // expired certainly has.
                                 if (failure->status == 410 || failure->kind == Failure::Kind::transport)
                                   version_.clear();
                                 return failed(std::move(*failure));
                               }
                               // Servers close streams now and then. One that said nothing is retried with
                               // care.
                               if (events_ == 0)
                                 return failed({Failure::Kind::transport, 0, {}, "the watch was closed", {}});
                               failures_ = 0;
                               next();
                             }});
  }

  void take(std::string_view data) {
    const auto alive = alive_;
    for (auto end = data.find('\n'); end != std::string_view::npos; end = data.find('\n')) {
      line_ += data.substr(0, end);
      data.remove_prefix(end + 1);
      const std::string line = std::exchange(line_, {});
      if (!line.empty() && (!event(line) || !*alive)) return;
    }
    line_ += data;
    if (line_.size() > k_longest_line)
      restart({Failure::Kind::nonsense, 200, {}, "an event without end", {}});
  }

  // False when this stream is over.
  bool event(const std::string& line) {
    const auto event = parse_watch_event(line);
    if (!event) {
      restart({Failure::Kind::nonsense, 200, {}, event.error().message(), {}});
      return false;
    }
    if (event->type == WatchEvent::Type::error) {
      restart({Failure::Kind::status, event->code, event->reason, event->message, {}});
      return false;
    }
    ++events_;
    failures_ = 0;
    if (!event->pod.resource_version.empty()) version_ = event->pod.resource_version;
    const auto alive = alive_;
    if (event->type == WatchEvent::Type::changed && event->pod.name == pod_.name) tell(event->pod);
    if (!*alive) return false;
    const auto deleted = handlers_.deleted;
    if (event->type == WatchEvent::Type::deleted && event->pod.name == pod_.name && deleted) deleted();
    return *alive;
  }

  // After what cannot be resumed from: the present state is fetched again.
  void restart(Failure failure) {
    version_.clear();
    failed(std::move(failure));
  }

  void failed(Failure failure) {
    call_.reset();
    timer_ = client_.loop().after(backoff(++failures_, client_.random(), failure), [this] { next(); });
    const auto failing = handlers_.failing;
    if (failing) failing(failure);
  }

  Client& client_;
  PodName pod_;
  std::string version_;
  Client::WatchHandlers handlers_;
  std::string line_;
  int events_ = 0;
  int failures_ = 0;
  Loop::TimerId timer_ = 0;
  std::unique_ptr<Http::Call> call_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace

std::unique_ptr<Client::Operation> Client::watch(const PodName& pod, std::string resource_version,
                                                 WatchHandlers handlers) {
  return std::make_unique<PodWatch>(*this, pod, std::move(resource_version), std::move(handlers));
}

}  // namespace glidepod::kube
