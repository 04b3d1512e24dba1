#include "lib/kube/client.hpp"

#include <unistd.h>

#include "lib/base/file.hpp"
#include "lib/base/text.hpp"

namespace glidepod::kube {
namespace {

std::string path_of(const PodName& pod) {
  return fmt::format("/api/v1/namespaces/{}/pods/{}", pod.name_space, pod.name);
}

Call patch(const PodName& pod, std::string body,
           std::string_view content_type = "application/strategic-merge-patch+json") {
  return {.method = "PATCH",
          .path = path_of(pod) + "?fieldManager=glidepod",
          .body = std::move(body),
          .content_type = std::string(content_type)};
}

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

std::optional<Failure> failure_in(const http::Response& response) {
  if (response.status >= 200 && response.status < 300) return std::nullopt;
  Failure failure{Failure::Kind::status, response.status, {}, {}, response.retry_after};
  const auto status = parse_status(response.body);
  if (status) {
    failure.reason = status->reason;
    failure.message = status->message;
    if (!failure.retry_after && status->retry_after_seconds > 0)
      failure.retry_after = std::chrono::seconds(status->retry_after_seconds);
  } else {
    failure.message = one_line(response.body, 200);
  }
  return failure;
}

Result<std::unique_ptr<Client>> Client::create(Loop& loop, Endpoint endpoint) {
  auto transport = TRY(http::Transport::create(loop));
  return std::unique_ptr<Client>(new Client(std::move(endpoint), std::move(transport)));
}

http::Request Client::request(std::string method, const std::string& path) const {
  http::Request request;
  request.method = std::move(method);
  request.url = endpoint_.url + path;
  request.unix_socket = endpoint_.unix_socket;
  request.ca_file = endpoint_.ca_file;
  request.headers.emplace_back("Accept: application/json");
  if (!endpoint_.token_file.empty()) {
    // Without a token the API answers 401, and its words say more than an error of ours would.
    if (const auto token = read_file(endpoint_.token_file, 65536))
      request.authorization = fmt::format("Bearer {}", trim(token.value()));
  }
  return request;
}

std::unique_ptr<http::Exchange> Client::call(Call call, AnswerHandler handler) {
  http::Plan plan;
  plan.deadline = std::chrono::steady_clock::now() + call.time_limit;
  plan.attempt_limit = call.attempt_limit;
  plan.repeat = call.repeat;
  plan.attempted = observer_;
  plan.judge = [check = std::move(call.check)](const http::Response& response) {
    auto failure = failure_in(response);
    if (failure || !check) return failure;
    if (const auto checked = check(response.body); !checked)
      failure = Failure{Failure::Kind::nonsense, response.status, {}, checked.error().message(), {}};
    return failure;
  };
  // A name that is taken, or a condition that is not met, will be the same at the next attempt. What a POST
  // conflicts with is a quota that others change at the same moment (kubernetes#67761).
  plan.hopeless = [conditional = call.method != "PATCH" && call.method != "POST"](const Failure& failure) {
    return failure.status == 409 && (conditional || failure.reason == "AlreadyExists");
  };
  plan.request = [this, call = std::move(call)] {
    auto next = request(call.method, call.path);
    next.longest_body = call.longest_answer;
    next.body = call.body;
    if (!call.body.empty()) next.headers.push_back("Content-Type: " + call.content_type);
    return next;
  };
  return std::make_unique<http::Exchange>(
      *transport_, std::move(plan),
      [handler = std::move(handler)](Result<http::Response> response, const std::string&) {
        handler(response ? Result<std::string>(std::move(response->body)) : response.error());
      });
}

std::unique_ptr<Client::Operation> Client::pod_call(Call wanted, SteadyTime deadline, PodHandler handler) {
  const auto pod = std::make_shared<Pod>();
  wanted.time_limit = std::chrono::ceil<Milliseconds>(deadline - std::chrono::steady_clock::now());
  wanted.check = [pod](const std::string& body) -> Result<void> {
    *pod = TRY(parse_pod(body));
    return {};
  };
  return call(std::move(wanted), [pod, handler = std::move(handler)](const Result<std::string>& answer) {
    if (!answer) return handler(answer.error());
    handler(std::move(*pod));
  });
}

std::unique_ptr<Client::Operation> Client::get(const PodName& pod, SteadyTime deadline, PodHandler handler) {
  return pod_call({.path = path_of(pod)}, deadline, std::move(handler));
}

std::unique_ptr<Client::Operation> Client::patch_image(const PodName& pod, const ImageChange& change,
                                                       SteadyTime deadline, PodHandler handler) {
  return pod_call(patch(pod, image_patch(change), "application/json-patch+json"), deadline,
                  std::move(handler));
}

std::unique_ptr<Client::Operation> Client::annotate(const PodName& pod, std::string_view key,
                                                    std::string_view value, SteadyTime deadline,
                                                    PodHandler handler) {
  return pod_call(patch(pod, annotation_patch(key, value)), deadline, std::move(handler));
}

std::unique_ptr<Client::Operation> Client::fail_pod(const PodName& pod, SteadyTime deadline,
                                                    PodHandler handler) {
  return pod_call(patch(pod, R"({"spec":{"activeDeadlineSeconds":1}})"), deadline, std::move(handler));
}

}  // namespace glidepod::kube
