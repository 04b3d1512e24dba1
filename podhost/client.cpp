#include "podhost/client.hpp"

#include <curl/curl.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "lib/base/file.hpp"

namespace glidepod::podhost {
namespace {

using Json = nlohmann::json;

std::size_t print(char* data, std::size_t size, std::size_t count, void*) {
  const std::size_t written = std::fwrite(data, size, count, stdout) * size;
  std::fflush(stdout);
  return written;
}

std::size_t collect(char* data, std::size_t size, std::size_t count, void* target) {
  static_cast<std::string*>(target)->append(data, size * count);
  return size * count;
}

struct Reply {
  long code = 0;  // 0: the daemon could not be reached
  std::string body;
};

// stream: a good answer is printed as it comes.
Reply call(const std::string& socket, const std::string& method, const std::string& path,
           const std::string& body, bool stream) {
  Reply reply;
  const std::unique_ptr<CURL, void (*)(CURL*)> curl(curl_easy_init(), curl_easy_cleanup);
  const std::unique_ptr<curl_slist, void (*)(curl_slist*)> headers(
      curl_slist_append(nullptr, "Content-Type: application/json"), curl_slist_free_all);
  curl_easy_setopt(curl.get(), CURLOPT_UNIX_SOCKET_PATH, socket.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_NOPROXY, "*");
  curl_easy_setopt(curl.get(), CURLOPT_URL, ("http://podhost/api/v1/namespaces/" + path).c_str());
  curl_easy_setopt(curl.get(), CURLOPT_CUSTOMREQUEST, method.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.get());
  if (!body.empty()) {
    curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDSIZE, static_cast<long>(body.size()));
    curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDS, body.c_str());
  }
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, stream ? print : collect);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &reply.body);
  if (const CURLcode code = curl_easy_perform(curl.get()); code != CURLE_OK) {
    std::fprintf(stderr, "podhost: %s: %s\n", socket.c_str(), curl_easy_strerror(code));
    return reply;
  }
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &reply.code);
  return reply;
}

void print_row(const Json& pod) {
  std::size_t ready = 0;
  int restarts = 0;
  std::string state = pod.at("status").value("phase", "");
  for (const auto& status : pod.at("status").value("containerStatuses", Json::array())) {
    ready += status.value("ready", false) ? 1 : 0;
    restarts += status.value("restartCount", 0);
    const Json now = status.value("state", Json::object());
    if (now.contains("waiting")) state = now["waiting"].value("reason", state);
  }
  if (pod.at("metadata").contains("deletionTimestamp")) state = "Terminating";
  const auto count = pod.at("spec").at("containers").size();
  std::printf("%-40s %zu/%zu   %-20s %d\n", pod.at("metadata").value("name", "").c_str(), ready, count,
              state.c_str(), restarts);
}

}  // namespace

void add_client(CLI::App& app, ClientCommand* command) {
  app.require_subcommand(0, 1);
  app.fallthrough();
  const auto verb = [&](const char* name, const char* help) {
    CLI::App* sub = app.add_subcommand(name, help);
    sub->add_option("-n,--namespace", command->ns);
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
  std::string path = command.ns + "/pods";
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
    const Json pod = Json::parse(body, nullptr, false);
    if (pod.is_object() && pod.contains("metadata") && pod["metadata"].is_object() &&
        command.ns == "default") {
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
    path += "/log?container=" + command.container + (command.follow ? "&follow=true" : "");
  }
  const bool stream = command.verb == "logs";
  const Reply reply = call(socket, method, path, body, stream);
  if (reply.code == 0) return 1;
  if (stream) return reply.code < 400 ? 0 : 1;
  const Json answer = Json::parse(reply.body, nullptr, false);
  if (!answer.is_object()) return 1;
  if (reply.code >= 400) {
    std::fprintf(stderr, "Error from server (%s): %s\n", answer.value("reason", "").c_str(),
                 answer.value("message", "").c_str());
    return 1;
  }
  if (command.verb != "get") {
    std::printf("pod/%s %s\n", answer.at("metadata").value("name", "").c_str(),
                command.verb == "create" ? "created" : "deleted");
  } else if (!command.name.empty()) {
    std::printf("%s\n", answer.dump(2).c_str());
  } else {
    std::printf("%-40s %-5s %-20s %s\n", "NAME", "READY", "STATUS", "RESTARTS");
    for (const auto& pod : answer.value("items", Json::array())) print_row(pod);
  }
  return 0;
}

}  // namespace glidepod::podhost
