#include "podhost/client.hpp"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "lib/base/file.hpp"
#include "lib/base/json.hpp"
#include "lib/http/blocking.hpp"
#include "lib/http/url.hpp"
#include "podhost/api/access.hpp"

namespace glidepod::podhost {
namespace {

using Json = nlohmann::json;

// stream: a good answer is printed as it comes.
Result<http::Response> call(const std::string& socket, const std::string& method, const std::string& path,
                            const std::string& body, bool stream) {
  http::Request request;
  request.method = method;
  request.url = "http://podhost/api/v1/namespaces/" + path;
  request.unix_socket = socket;
  request.headers.emplace_back("Content-Type: application/json");
  request.body = body;
  request.longest_body = std::size_t{256} << 20;  // a list of many pods
  http::Callbacks callbacks;
  if (stream)
    callbacks.data = [](std::string_view data) {
      const bool written = std::fwrite(data.data(), 1, data.size(), stdout) == data.size();
      return std::fflush(stdout) == 0 && written;
    };
  return http::perform(std::move(request), callbacks).in(socket);
}

void print_row(const Json& pod) {
  std::size_t ready = 0;
  int restarts = 0;
  std::string state = pod.at("status").value("phase", "");
  auto count = pod.at("spec").at("containers").size();
  const auto add = [&](const Json& status) {
    ready += status.value("ready", false) ? 1 : 0;
    restarts += status.value("restartCount", 0);
    const Json now = status.value("state", Json::object());
    if (now.contains("waiting")) state = now["waiting"].value("reason", state);
  };
  for (const auto& status : pod.at("status").value("containerStatuses", Json::array())) add(status);
  for (const auto& container : pod.at("spec").value("initContainers", Json::array())) {
    if (!is_sidecar(container)) continue;
    ++count;
    for (const auto& status : pod.at("status").value("initContainerStatuses", Json::array()))
      if (status.value("name", "") == container.value("name", "")) add(status);
  }
  if (pod.at("metadata").contains("deletionTimestamp")) state = "Terminating";
  std::printf("%-40s %zu/%zu   %-20s %d\n", pod.at("metadata").value("name", "").c_str(), ready, count,
              state.c_str(), restarts);
}

}  // namespace

void add_client(CLI::App& app, ClientCommand* command) {
  app.require_subcommand(0, 1);
  app.fallthrough();
  const auto verb = [&](const char* name, const char* help) {
    CLI::App* sub = app.add_subcommand(name, help);
    sub->add_option("-n,--namespace", command->name_space);
    sub->callback([command, name] { command->verb = name; });
    return sub;
  };
  verb("get", "list pods, or print one as JSON")->add_option("name", command->name);
  verb("create", "create a pod from a JSON file")
      ->add_option("-f,--file", command->file, "- is standard input")
      ->required();
  CLI::App* remove = verb("delete", "delete a pod");
  remove->add_option("name", command->name)->required();
  remove->add_option("--grace-period", command->grace, "seconds");
  CLI::App* logs = verb("logs", "print a container's log");
  logs->add_option("name", command->name)->required();
  logs->add_option("-c,--container", command->container);
  logs->add_flag("-f,--follow", command->follow);
}

int run_client(const std::string& socket, const ClientCommand& command) {
  std::string path = command.name_space + "/pods";
  std::string method = "GET";
  std::string body;
  if (command.verb == "create") {
    method = "POST";
    const auto text = read_file(command.file == "-" ? "/dev/stdin" : command.file);
    if (!text) {
      std::fprintf(stderr, "podhost: %s\n", text.error().message().c_str());
      return 1;
    }
    body = text.value();
    const Json pod = json_from(body);
    if (pod.is_object() && pod.contains("metadata") && pod["metadata"].is_object() &&
        command.name_space == "default") {
      path = pod["metadata"].value("namespace", "default") + "/pods";
    }
  } else if (!command.name.empty()) {
    path += "/" + command.name;
  }
  if (command.verb == "delete") {
    method = "DELETE";
    if (command.grace >= 0) path += "?gracePeriodSeconds=" + std::to_string(command.grace);
  }
  if (command.verb == "logs") {
    path += "/log?container=" + http::url_encoded(command.container) + (command.follow ? "&follow=true" : "");
  }
  const bool follows = command.verb == "logs";
  const auto reply = call(socket, method, path, body, follows);
  if (!reply) {
    std::fprintf(stderr, "podhost: %s\n", reply.error().message().c_str());
    return 1;
  }
  if (follows && reply->status < 400) return 0;
  const Json answer = json_from(reply->body);
  if (!answer.is_object()) return 1;
  if (reply->status >= 400) {
    std::fprintf(stderr, "Error from server (%s): %s\n", answer.value("reason", "").c_str(),
                 answer.value("message", "").c_str());
    return 1;
  }
  if (command.verb != "get") {
    std::printf("pod/%s %s\n", answer.at("metadata").value("name", "").c_str(),
                command.verb == "create" ? "created" : "deleted");
  } else if (!command.name.empty()) {
    std::printf("%s\n", json_text(answer, 2).c_str());
  } else {
    std::printf("%-40s %-5s %-20s %s\n", "NAME", "READY", "STATUS", "RESTARTS");
    for (const auto& pod : answer.value("items", Json::array())) print_row(pod);
  }
  return 0;
}

}  // namespace glidepod::podhost
