#include "provisioner/api_caller.hpp"

#include <algorithm>

namespace glidepod::provisioner {

namespace {

constexpr Milliseconds k_attempt_limit{15'000};
// A page of pods with very long specifications.
constexpr std::size_t k_longest_answer = std::size_t{64} << 20;

}  // namespace

std::string url_encoded(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || std::string_view("-._~").find(c) != std::string_view::npos)
      result += c;
    else
      result += fmt::format("%{:02X}", byte);
  }
  return result;
}

class ApiCaller::Request {
 public:
  Request(ApiCaller& owner, std::uint64_t id, ApiCall call, std::function<void(ApiAnswer)> handler)
      : owner_(owner),
        id_(id),
        call_(std::move(call)),
        deadline_(std::chrono::steady_clock::now() + call_.time_limit),
        handler_(std::move(handler)) {}
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  ~Request() {
    if (timer_ != 0) owner_.client_.loop().cancel(timer_);
  }

  void attempt() {
    timer_ = 0;
    ++attempts_;
    began_ = std::chrono::steady_clock::now();
    auto request = owner_.client_.request(call_.method, call_.path);
    const auto left = std::chrono::ceil<Milliseconds>(deadline_ - std::chrono::steady_clock::now());
    request.timeout = std::clamp(left, Milliseconds(1), k_attempt_limit);
    request.longest_body = k_longest_answer;
    if (!call_.body.empty()) {
      request.body = call_.body;
      request.headers.emplace_back("Content-Type: application/json");
    }
    http_ = owner_.client_.http().start(std::move(request), {{}, [this](Result<kube::HttpResponse> response) {
                                                               answered(std::move(response));
                                                             }});
  }
  const std::function<void(ApiAnswer)>& handler() const { return handler_; }
  // Does not wait for another attempt.
  void wind_up() {
    if (timer_ == 0) return;
    owner_.client_.loop().cancel(timer_);
    timer_ = owner_.client_.loop().after(Milliseconds(0), [this] {
      timer_ = 0;
      owner_.finish(id_, last_failure_);
    });
  }

 private:
  void answered(Result<kube::HttpResponse> response) {
    if (owner_.counts_ != nullptr)
      owner_.counts_->add(call_.method, response ? response->status : 0,
                          std::chrono::steady_clock::now() - began_);
    // 201 and 202 are a creation's and a deletion's success.
    if (response && response->status >= 200 && response->status < 300)
      return owner_.finish(id_, std::move(response->body));
    auto failure = std::get<kube::Failure>(kube::body_of(std::move(response)));
    const auto wait = kube::backoff(attempts_, owner_.client_.random(), failure);
    const bool in_time = std::chrono::steady_clock::now() + wait < deadline_;
    // The token may have been replaced between our reading it and the server's.
    const bool expired_token = failure.status == 401 && attempts_ == 1;
    // A name that is taken and a condition that is not met stay so.
    const bool settled =
        failure.status == 409 && (call_.method == "DELETE" || failure.reason == "AlreadyExists");
    if (settled || (!failure.retriable() && !expired_token) || !in_time || owner_.winding_up_)
      return owner_.finish(id_, std::move(failure));
    last_failure_ = std::move(failure);
    timer_ = owner_.client_.loop().after(wait, [this] { attempt(); });
  }

  ApiCaller& owner_;
  std::uint64_t id_;
  ApiCall call_;
  SteadyTime deadline_;
  std::function<void(ApiAnswer)> handler_;
  int attempts_ = 0;
  SteadyTime began_;  // of the present attempt
  kube::Failure last_failure_;
  Loop::TimerId timer_ = 0;
  std::unique_ptr<kube::Http::Call> http_;
};

ApiCaller::ApiCaller(kube::Client& client, ApiCounts* counts) : client_(client), counts_(counts) {}

ApiCaller::~ApiCaller() {
  for (const auto timer : later_) client_.loop().cancel(timer);
}

void ApiCaller::later(std::function<void()> function) {
  const auto timer = std::make_shared<Loop::TimerId>();
  *timer = client_.loop().after(Milliseconds(0), [this, timer, function = std::move(function)] {
    later_.erase(*timer);
    function();
  });
  later_.insert(*timer);
}

void ApiCaller::wind_up() {
  winding_up_ = true;
  for (const auto& [id, request] : requests_) request->wind_up();
}

void ApiCaller::call(ApiCall call, std::function<void(ApiAnswer)> handler) {
  const auto id = ++last_id_;
  auto& request = requests_[id] = std::make_unique<Request>(*this, id, std::move(call), std::move(handler));
  request->attempt();
}

void ApiCaller::finish(std::uint64_t id, ApiAnswer answer) {
  // Kept to the end of this function: it is the one that calls us.
  const auto request = std::move(requests_.extract(id).mapped());
  request->handler()(std::move(answer));
}

}  // namespace glidepod::provisioner
