#include "lib/kube/client.hpp"

#include <unistd.h>

#include <random>

#include "lib/base/file.hpp"
#include "lib/base/text.hpp"

namespace glidepod::kube {
namespace {

constexpr Milliseconds k_attempt_timeout{15'000};

std::string path_of(const PodName& pod) {
  return fmt::format("/api/v1/namespaces/{}/pods/{}", pod.space, pod.name);
}

// One GET or PATCH with its repetitions.
class Exchange : public Client::Operation {
 public:
  Exchange(Client& client, std::string method, std::string path, std::string body, SteadyTime deadline,
           PodHandler handler)
      : client_(client),
        method_(std::move(method)),
        path_(std::move(path)),
        body_(std::move(body)),
        deadline_(deadline),
        handler_(std::move(handler)) {
    attempt();
  }
  ~Exchange() override { client_.loop().cancel(timer_); }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

 private:
  void attempt() {
    ++attempts_;
    HttpRequest request = client_.request(method_, path_);
    const auto left = std::chrono::ceil<Milliseconds>(deadline_ - std::chrono::steady_clock::now());
    request.timeout = std::clamp(left, Milliseconds(1), k_attempt_timeout);
    if (!body_.empty()) {
      request.body = body_;
      request.headers.emplace_back("Content-Type: application/strategic-merge-patch+json");
    }
    call_ = client_.http().start(std::move(request), {{}, [this](Result<HttpResponse> response) {
                                                        answered(body_of(std::move(response)));
                                                      }});
  }

  void answered(std::variant<std::string, Failure> answer) {
    Failure failure;
    if (auto* text = std::get_if<std::string>(&answer)) {
      auto pod = parse_pod(*text);
      if (pod) return finish(std::move(*pod));
      failure = {Failure::Kind::nonsense, 200, {}, pod.error().message(), {}};
    } else {
      failure = std::get<Failure>(std::move(answer));
    }
    // The token may have been replaced between our reading it and the server's.
    const bool expired_token = failure.status == 401 && attempts_ == 1;
    const Milliseconds wait = backoff(attempts_, client_.random(), failure);
    const bool in_time = std::chrono::steady_clock::now() + wait < deadline_;
    failure.earlier = earlier_;
    if (!failure.rejected()) earlier_ = Failure::Effect::unknown;
    if ((!failure.retriable() && !expired_token) || !in_time) return finish(std::move(failure));
    timer_ = client_.loop().after(wait, [this] { attempt(); });
  }

  void finish(PodAnswer answer) {
    const auto handler = std::move(handler_);
    handler(std::move(answer));  // may destroy this
  }

  Client& client_;
  std::string method_, path_, body_;
  SteadyTime deadline_;
  PodHandler handler_;
  int attempts_ = 0;
  Failure::Effect earlier_ = Failure::Effect::none;
  Loop::TimerId timer_ = 0;
  std::unique_ptr<Http::Call> call_;
};

}  // namespace

Result<Endpoint> endpoint_in_pod(const std::string& folder, const char* const* environment) {
  const std::string socket = folder + "/api.sock";
  if (::access(socket.c_str(), F_OK) == 0) return Endpoint{"http://localhost", socket, {}, {}};
  std::string host, port = "443";
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    constexpr std::string_view k_host = "KUBERNETES_SERVICE_HOST=", k_port = "KUBERNETES_SERVICE_PORT=";
    if (entry.starts_with(k_host)) host = entry.substr(k_host.size());
    if (entry.starts_with(k_port)) port = entry.substr(k_port.size());
  }
  if (host.empty())
    return error("no Kubernetes API: {} does not exist and KUBERNETES_SERVICE_HOST is not set", socket);
  if (host.find(':') != std::string::npos) host = "[" + host + "]";
  return Endpoint{fmt::format("https://{}:{}", host, port), {}, folder + "/token", folder + "/ca.crt"};
}

std::variant<std::string, Failure> body_of(Result<HttpResponse> response) {
  if (!response) return Failure{Failure::Kind::transport, 0, {}, response.error().message(), {}};
  if (response->status == 200) return std::move(response->body);
  Failure failure{Failure::Kind::status, response->status, {}, {}, response->retry_after};
  const auto status = parse_status(response->body);
  if (status) {
    failure.reason = status->reason;
    failure.message = status->message;
    if (!failure.retry_after && status->retry_after_seconds > 0)
      failure.retry_after = std::chrono::seconds(status->retry_after_seconds);
  } else {
    failure.message = one_line(response->body, 200);
  }
  return failure;
}

Client::Client(Loop& loop, Endpoint endpoint, std::unique_ptr<Http> http)
    : loop_(loop),
      endpoint_(std::move(endpoint)),
      http_(std::move(http)),
      random_state_(std::random_device()()) {}

Result<std::unique_ptr<Client>> Client::create(Loop& loop, Endpoint endpoint) {
  auto http = TRY(Http::create(loop));
  return std::unique_ptr<Client>(new Client(loop, std::move(endpoint), std::move(http)));
}

double Client::random() {
  std::minstd_rand generator(static_cast<std::minstd_rand::result_type>(random_state_));
  random_state_ = generator();
  return static_cast<double>(random_state_) / static_cast<double>(std::minstd_rand::max());
}

HttpRequest Client::request(std::string method, const std::string& path) const {
  HttpRequest request;
  request.method = std::move(method);
  request.url = endpoint_.url + path;
  request.unix_socket = endpoint_.unix_socket;
  request.ca_file = endpoint_.ca_file;
  request.headers.emplace_back("Accept: application/json");
  request.headers.emplace_back("User-Agent: glidepod/" GLIDEPOD_VERSION);
  if (!endpoint_.token_file.empty()) {
    // Without a token the API says 401, which says more than an error of ours.
    if (const auto token = read_file(endpoint_.token_file, 65536))
      request.headers.push_back(fmt::format("Authorization: Bearer {}", trim(token.value())));
  }
  return request;
}

std::unique_ptr<Client::Operation> Client::get(const PodName& pod, SteadyTime deadline, PodHandler handler) {
  return std::make_unique<Exchange>(*this, "GET", path_of(pod), std::string(), deadline, std::move(handler));
}

std::unique_ptr<Client::Operation> Client::patch_image(const PodName& pod, std::string_view container,
                                                       std::string_view image, SteadyTime deadline,
                                                       PodHandler handler) {
  return std::make_unique<Exchange>(*this, "PATCH", path_of(pod) + "?fieldManager=glidepod",
                                    image_patch(container, image), deadline, std::move(handler));
}

std::unique_ptr<Client::Operation> Client::fail_pod(const PodName& pod, SteadyTime deadline,
                                                    PodHandler handler) {
  return std::make_unique<Exchange>(*this, "PATCH", path_of(pod) + "?fieldManager=glidepod",
                                    R"({"spec":{"activeDeadlineSeconds":1}})", deadline, std::move(handler));
}

}  // namespace glidepod::kube
