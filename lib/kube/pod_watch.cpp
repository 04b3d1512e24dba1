#include <algorithm>
#include <utility>

#include "lib/http/url.hpp"
#include "lib/kube/client.hpp"
#include "lib/kube/watch.hpp"

namespace glidepod::kube {
namespace {

constexpr Milliseconds k_longest_silence{30'000}, k_question_limit{5'000};

// Follows one pod: reads its present state if no version is known, then watches, again and again. A stream
// whose connection or proxy has died is as silent as a pod to which nothing happens. So the pod is read now
// and then.
class PodWatch : public Client::Operation {
 public:
  PodWatch(Client& client, PodName pod, std::string version, Client::WatchHandlers handlers,
           Milliseconds silence)
      : client_(client), pod_(std::move(pod)), handlers_(std::move(handlers)), first_silence_(silence) {
    if (version.empty())
      get();
    else
      follow(std::move(version));
  }
  ~PodWatch() override {
    *alive_ = false;
    client_.loop().cancel(timer_);
    client_.loop().cancel(silence_timer_);
  }
  PodWatch(const PodWatch&) = delete;
  PodWatch& operator=(const PodWatch&) = delete;

 private:
  // Makes one attempt only: this class makes its own pauses and reports each failure.
  void get() {
    call_ = read(Milliseconds(15'000), [this](const Result<std::string>& answer) { got(answer); });
  }
  std::unique_ptr<http::Operation> read(Milliseconds limit, AnswerHandler handler) {
    return client_.call({.path = fmt::format("/api/v1/namespaces/{}/pods/{}", pod_.name_space, pod_.name),
                         .time_limit = limit,
                         .repeat = http::Plan::Repeat::never},
                        std::move(handler));
  }

  void got(const Result<std::string>& answer) {
    if (!answer) return failed(Failure::of(answer.error()));
    const auto pod = parse_pod(answer.value());
    if (!pod) return failed({Failure::Kind::nonsense, 200, {}, pod.error().message(), {}});
    const auto alive = alive_;
    tell(pod.value());
    if (*alive) follow(pod->resource_version);
  }

  // Notes that this version is known. Changes after it are expected.
  void heard(const std::string& version) {
    told_ = version_number(version);
    question_.reset();
    await_word(first_silence_);
  }
  void await_word(Milliseconds silence) {
    client_.loop().cancel(silence_timer_);
    silence_timer_ = client_.loop().after(silence, [this, silence] {
      question_ = read(k_question_limit,
                       [this, silence](const Result<std::string>& answer) { asked(answer, silence); });
    });
  }
  void asked(const Result<std::string>& answer, Milliseconds silence) {
    const auto pod = answer ? parse_pod(answer.value()) : Result<Pod>(answer.error());
    // If the pod could not be read, nothing is known about the stream either.
    if (!pod) return await_word(silence);
    if (version_number(pod->resource_version) <= told_)
      return await_word(std::min(silence * 2, std::max(k_longest_silence, silence)));
    const auto alive = alive_;
    if (const auto handler = handlers_.failing; handler)
      handler({Failure::Kind::transport, 0, {}, "the watch has fallen silent", {}});
    if (*alive) tell(pod.value());
    if (*alive) follow(pod->resource_version);
  }

  void follow(std::string version) {
    heard(version);
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
    if (pod->name != pod_.name) return;
    heard(pod->resource_version);
    tell(pod.value());
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
    // A copy, since `why` may be part of the call.
    const Failure failure = why;  // NOLINT(performance-unnecessary-copy-initialization)
    call_.reset();
    question_.reset();
    client_.loop().cancel(silence_timer_);
    const auto now = std::chrono::steady_clock::now();
    // A stream that has lived for so long was well: this is the first failure again.
    if (now - followed_ > 2 * first_silence_) failures_ = 0;
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
  Milliseconds first_silence_;
  std::int64_t told_ = 0;  // the newest version that is known
  Loop::TimerId silence_timer_ = 0;
  std::unique_ptr<http::Operation> question_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace

std::unique_ptr<Client::Operation> Client::watch(const PodName& pod, std::string resource_version,
                                                 WatchHandlers handlers, Milliseconds silence) {
  return std::make_unique<PodWatch>(*this, pod, std::move(resource_version), std::move(handlers), silence);
}

}  // namespace glidepod::kube
