#include "lib/http/url.hpp"
#include "lib/kube/client.hpp"
#include "lib/kube/watch.hpp"

namespace glidepod::kube {
namespace {

// After this long, a failure is the first one again.
constexpr std::chrono::seconds k_good_while{10};

// One pod: its present state where there is no version to start from, then a watch; again and again.
class PodWatch : public Client::Operation {
 public:
  PodWatch(Client& client, PodName pod, std::string version, Client::WatchHandlers handlers)
      : client_(client), pod_(std::move(pod)), handlers_(std::move(handlers)) {
    if (version.empty())
      get();
    else
      follow(std::move(version));
  }
  ~PodWatch() override {
    *alive_ = false;
    client_.loop().cancel(timer_);
  }
  PodWatch(const PodWatch&) = delete;
  PodWatch& operator=(const PodWatch&) = delete;

 private:
  // One attempt: the pauses are this one's own, and each failure is told.
  void get() {
    timer_ = 0;
    call_ = client_.call({.path = fmt::format("/api/v1/namespaces/{}/pods/{}", pod_.name_space, pod_.name),
                          .time_limit = Milliseconds(15'000),
                          .repeat = http::Plan::Repeat::never},
                         [this](const Result<std::string>& answer) { got(answer); });
  }

  void got(const Result<std::string>& answer) {
    if (!answer) return failed(Failure::of(answer.error()));
    const auto pod = parse_pod(answer.value());
    if (!pod) return failed({Failure::Kind::nonsense, 200, {}, pod.error().message(), {}});
    const auto alive = alive_;
    tell(pod.value());
    if (*alive) follow(pod->resource_version);
  }

  void follow(std::string version) {
    followed_ = std::chrono::steady_clock::now();
    call_ = std::make_unique<Watch>(
        client_,
        Watch::Source{.path = fmt::format("/api/v1/namespaces/{}/pods", pod_.name_space),
                      .selector = "fieldSelector=" + http::url_encoded("metadata.name=" + pod_.name),
                      .version = std::move(version)},
        Watch::Handlers{[this](const nlohmann::json& object) { changed(object); },
                        [this](const nlohmann::json& object) { deleted(object); },
                        [this](const Failure& failure) { failed(failure); }});
  }

  void changed(const nlohmann::json& object) {
    const auto pod = pod_from(object);
    if (!pod) return failed({Failure::Kind::nonsense, 200, {}, pod.error().message(), {}});
    if (pod->name == pod_.name) tell(pod.value());
  }

  void deleted(const nlohmann::json& object) {
    const auto pod = pod_from(object);
    const auto handler = handlers_.deleted;
    if (pod && pod->name == pod_.name && handler) handler();
  }

  // The handler may destroy this, and with it the handler.
  void tell(const Pod& pod) {
    const auto handler = handlers_.changed;
    handler(pod);
  }

  void failed(const Failure& why) {
    // A copy, as it may be the call's own.
    const Failure failure = why;  // NOLINT(performance-unnecessary-copy-initialization)
    call_.reset();
    const auto now = std::chrono::steady_clock::now();
    if (now - followed_ > k_good_while) failures_ = 0;
    followed_ = now;
    timer_ = client_.loop().after(http::backoff(++failures_, client_.transport().random(), failure),
                                  [this] { get(); });
    const auto handler = handlers_.failing;
    if (handler) handler(failure);
  }

  Client& client_;
  PodName pod_;
  Client::WatchHandlers handlers_;
  SteadyTime followed_ = std::chrono::steady_clock::now();
  int failures_ = 0;
  Loop::TimerId timer_ = 0;
  std::unique_ptr<http::Operation> call_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace

std::unique_ptr<Client::Operation> Client::watch(const PodName& pod, std::string resource_version,
                                                 WatchHandlers handlers) {
  return std::make_unique<PodWatch>(*this, pod, std::move(resource_version), std::move(handlers));
}

}  // namespace glidepod::kube
