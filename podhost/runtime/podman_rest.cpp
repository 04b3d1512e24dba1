#include "podhost/runtime/podman_rest.hpp"

#include "lib/base/json.hpp"
#include "lib/http/blocking.hpp"
#include "lib/http/url.hpp"

namespace glidepod::podhost {
namespace {

using Json = nlohmann::json;

constexpr std::size_t k_answer_limit = std::size_t{64} << 20;

const Json& part_of(const Json& json, const char* key) {
  static const Json k_none = Json::object();
  const auto found = json.find(key);
  return found != json.end() && found->is_object() ? *found : k_none;
}

}  // namespace

Json PodmanRest::Answer::json() const {
  return json_from(body);
}

Error PodmanRest::Answer::error() const {
  const auto why = in_words();
  return status == 404 ? why.with(PodmanLacks{}) : why;
}

// Podman's message ends with its "cause", which says nothing new.
Error PodmanRest::Answer::in_words() const {
  const Json answer = json();
  if (!answer.is_object()) return glidepod::error("podman answered {}", status);
  std::string message = text_of(answer, "message");
  const std::string cause = ": " + text_of(answer, "cause");
  if (message.size() > cause.size() && message.ends_with(cause))
    message.resize(message.size() - cause.size());
  return Error(message.empty() ? fmt::format("podman answered {}", status) : message);
}

void PodmanRest::end_calls_at(SteadyTime when) {
  end_ = when;
}

Result<PodmanRest::Answer> PodmanRest::call(const Call& call) {
  http::Request request;
  request.method = call.method;
  request.url = "http://podman/v4.0.0/libpod" + call.path;
  request.unix_socket = socket_;
  request.headers.emplace_back("Content-Type: application/json");
  request.body = call.body;
  request.timeout = std::chrono::seconds(call.timeout_seconds);
  request.longest_body = k_answer_limit;
  const auto over = [&] {
    return (call.cancelled && *call.cancelled) || std::chrono::steady_clock::now() >= end_.load();
  };
  auto response = http::perform(std::move(request), {over, {}});
  if (response) return Answer{response->status, std::move(response->body)};
  const auto* lost = response.error().fact<http::Lost>();
  const int number = !lost                                     ? ENOMEM
                     : lost->why == http::Lost::Why::timeout   ? ETIMEDOUT
                     : lost->why == http::Lost::Why::cancelled ? ECANCELED
                                                               : ECONNREFUSED;
  return Error("podman: " + response.error().message(), number);
}

Result<void> PodmanRest::expect(const Call& wanted, long also_accepted) {
  const Answer answer = TRY(call(wanted));
  if (answer.good() || answer.status == also_accepted) return {};
  return answer.error();
}

Result<std::optional<ImageInfo>> PodmanRest::find_image(const std::string& name) {
  const Answer answer = TRY(call({"GET", "/images/" + http::url_encoded(name) + "/json", ""}));
  if (answer.status == 404) return std::optional<ImageInfo>();
  const Json json = answer.json();
  if (!answer.good() || !json.is_object()) return answer.error();
  ImageInfo image{text_of(json, "Id"), {}, text_of(json, "User")};
  for (const auto& digest : json.value("RepoDigests", Json::array())) {
    if (digest.is_string()) image.digests.push_back(digest.get<std::string>());
  }
  return std::optional(image);
}

Result<void> PodmanRest::pull(const std::string& name, const std::atomic<bool>& cancelled) {
  const Answer answer =
      TRY(call({"POST", "/images/pull?quiet=true&policy=always&reference=" + http::url_encoded(name), "", 0,
                &cancelled}));
  // The answer is a stream of JSON objects; failure comes as one of them under status 200.
  for (std::size_t begin = 0; begin < answer.body.size();) {
    const auto end = std::min(answer.body.find('\n', begin), answer.body.size());
    const Json line = json_from(answer.body.substr(begin, end - begin));
    if (line.is_object() && !text_of(line, "error").empty()) return Error(text_of(line, "error"));
    begin = end + 1;
  }
  if (!answer.good()) return answer.error();
  return {};
}

Result<std::string> PodmanRest::run_pod(const Json& config) {
  const Answer created = TRY(call({"POST", "/pods/create", json_text(config)}));
  const Json pod = created.json();
  if (!created.good() || !pod.is_object()) return created.error();
  const std::string id = text_of(pod, "Id");
  TRY(expect({"POST", "/pods/" + id + "/start", ""}, 304));
  const Answer inspected = TRY(call({"GET", "/pods/" + id + "/json", ""}));
  const Json state = inspected.json();
  if (!inspected.good() || !state.is_object()) return inspected.error();
  return text_of(state, "InfraContainerID");
}

Result<std::optional<Podman::PodInfo>> PodmanRest::find_pod(const std::string& name) {
  // An inspection waits for the pod's lock, which a removal holds; one that lost the race gets an error and
  // not 404.
  Answer answer = TRY(call({"GET", "/pods/" + http::url_encoded(name) + "/json", ""}));
  if (!answer.good() && answer.status != 404)
    answer = TRY(call({"GET", "/pods/" + http::url_encoded(name) + "/json", ""}));
  if (answer.status == 404) return std::optional<PodInfo>();
  const Json json = answer.json();
  if (!answer.good() || !json.is_object()) return answer.error();
  return std::optional(PodInfo{text_of(json, "Id"), text_of(json, "CgroupPath")});
}

Result<void> PodmanRest::remove_pod(const std::string& name) {
  return expect({"DELETE", "/pods/" + http::url_encoded(name) + "?force=true&timeout=0", ""}, 404);
}

Result<std::string> PodmanRest::create_container(const Json& config) {
  const Answer answer = TRY(call({"POST", "/containers/create", json_text(config)}));
  const Json json = answer.json();
  if (!answer.good() || !json.is_object()) return answer.error();
  return text_of(json, "Id");
}

Result<void> PodmanRest::init_container(const std::string& id) {
  return expect({"POST", "/containers/" + id + "/init", ""}, 304);
}

Result<void> PodmanRest::start_container(const std::string& id) {
  return expect({"POST", "/containers/" + id + "/start", ""}, 304);
}

Result<void> PodmanRest::update_container(const std::string& id, const Json& limits) {
  const Answer answer = TRY(call({"POST", "/containers/" + id + "/update", json_text(limits)}));
  return answer.good() ? Result<void>() : answer.error();
}

Result<ContainerInfo> PodmanRest::inspect_container(const std::string& id) {
  const Answer answer = TRY(call({"GET", "/containers/" + http::url_encoded(id) + "/json", ""}));
  const Json json = answer.json();
  if (!answer.good() || !json.is_object()) return answer.error();
  ContainerInfo info;
  info.id = text_of(json, "Id");
  info.name = text_of(json, "Name");
  info.image_id = text_of(json, "Image");
  info.pod = text_of(json, "Pod");
  const Json& state = part_of(json, "State");
  info.state = text_of(state, "Status");
  info.pid = state.value("Pid", 0);
  info.conmon_pid = state.value("ConmonPid", 0);
  info.exit_code = state.value("ExitCode", 0);
  info.oom_killed = state.value("OOMKilled", false);
  info.started = text_of(state, "StartedAt");
  info.finished = text_of(state, "FinishedAt");
  const Json& config = part_of(json, "Config");
  info.stop_signal = config.value("StopSignal", 15);
  for (const auto& [key, value] : part_of(config, "Labels").items()) {
    if (value.is_string()) info.labels[key] = value.get<std::string>();
  }
  for (const auto& [name, network] : part_of(part_of(json, "NetworkSettings"), "Networks").items()) {
    if (info.ip.empty() && network.is_object()) info.ip = text_of(network, "IPAddress");
  }
  return info;
}

Result<void> PodmanRest::remove_container(const std::string& id) {
  return expect({"DELETE", "/containers/" + http::url_encoded(id) + "?force=true&v=true&timeout=0", ""}, 404);
}

Result<std::vector<std::string>> PodmanRest::list(const std::string& path, const std::string& label) {
  const Json filter = {{"label", Json::array({label})}};
  const Answer answer = TRY(call({"GET", path + "filters=" + http::url_encoded(json_text(filter)), ""}));
  const Json json = answer.json();
  if (!answer.good() || json.is_discarded()) return answer.error();
  std::vector<std::string> ids;
  for (const auto& item : json) {
    if (item.is_object()) ids.push_back(text_of(item, "Id"));
  }
  return ids;
}

Result<std::vector<std::string>> PodmanRest::list_containers(const std::string& label) {
  return list("/containers/json?all=true&", label);
}

Result<std::vector<std::string>> PodmanRest::list_pods(const std::string& label) {
  return list("/pods/json?", label);
}

}  // namespace glidepod::podhost
