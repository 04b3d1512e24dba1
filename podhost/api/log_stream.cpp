#include "podhost/api/log_stream.hpp"

#include <fcntl.h>
#include <httplib.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/file.hpp"

namespace glidepod::podhost {
namespace {

using kube::ApiError;

constexpr std::size_t k_read_size = 65536;
constexpr std::size_t k_tail_limit = std::size_t{64} << 20;
constexpr Milliseconds k_follow_limit{4 * 3600 * 1000};

const Json* status_of(const Json& pod, const std::string& container) {
  for (const auto* key : {"containerStatuses", "initContainerStatuses"}) {
    const auto list = pod.at("status").find(key);
    if (list == pod.at("status").end()) continue;
    for (const auto& status : *list) {
      if (status.value("name", "") == container) return &status;
    }
  }
  return nullptr;
}

bool has_container(const Json& pod, const std::string& container) {
  for (const auto* key : {"containers", "initContainers"}) {
    const auto list = pod.at("spec").find(key);
    if (list == pod.at("spec").end()) continue;
    for (const auto& spec : *list) {
      if (spec.value("name", "") == container) return true;
    }
  }
  return false;
}

// What one answer needs while it is streamed.
struct LogStream {
  Store& store;
  const http::Connection& connection;
  std::string uid, container, path;
  int attempt;
  Fd file, inotify;
  std::unique_ptr<Store::Subscription> news;
  LogReader reader;
  std::optional<std::int64_t> left;

  bool send(std::string_view bytes, httplib::DataSink& sink) {
    std::string text = reader.feed(bytes);
    if (left) {
      text.resize(std::min(text.size(), static_cast<std::size_t>(*left)));
      *left -= static_cast<std::int64_t>(text.size());
    }
    return (text.empty() || sink.write(text.data(), text.size())) && (!left || *left > 0);
  }

  // Sends what the file holds beyond its present position.
  bool drain(httplib::DataSink& sink) {
    std::string buffer(k_read_size, '\0');
    while (true) {
      const ssize_t got = read(file.get(), buffer.data(), buffer.size());
      if (got <= 0) return got == 0;
      if (!send(std::string_view(buffer).substr(0, static_cast<std::size_t>(got)), sink)) return false;
    }
  }

  // Conmon writes to another file under this name by now, and nothing to this one.
  bool is_replaced() const {
    struct stat now {
    }, read{};
    return lstat(path.c_str(), &now) == 0 && fstat(file.get(), &read) == 0 &&
           (now.st_ino != read.st_ino || now.st_dev != read.st_dev);
  }

  bool watch() const {
    // IN_ATTRIB comes when the file has lost its name.
    return inotify_add_watch(inotify.get(), path.c_str(), IN_MODIFY | IN_ATTRIB) >= 0;
  }

  bool reopen() {
    auto opened = open_file(path, O_RDONLY | O_NOFOLLOW);
    if (!opened) return false;
    file = std::move(opened).value();
    return watch();
  }

  bool still_runs() const {
    const PodPtr pod = store.find(uid);
    const Json* status = pod ? status_of(*pod, container) : nullptr;
    return status && status->at("state").contains("running") && status->value("restartCount", 0) == attempt;
  }

  void follow(httplib::DataSink& sink) {
    while (true) {
      // Both before the read: what was written last is then in the file.
      const bool runs = still_runs();
      const bool replaced = is_replaced();
      if (!drain(sink)) return;
      if (replaced) {
        if (!reopen()) return;
        continue;
      }
      if (!runs) return;
      pollfd both[] = {
          {inotify.get(), POLLIN, 0}, {news->fd(), POLLIN, 0}, {connection.fd, connection.gone_events(), 0}};
      if (poll(both, 3, static_cast<int>(k_follow_limit.count())) <= 0 || both[2].revents != 0) return;
      eventfd_t count = 0;
      eventfd_read(news->fd(), &count);
      char events[4096];
      static_cast<void>(!read(inotify.get(), events, sizeof events));
    }
  }
};

}  // namespace

Result<void> stream_log(Store& store, const PodFiles& files, const http::Connection& connection,
                        const Json& pod, const LogRequest& request, httplib::Response& response) {
  const Json& containers = pod.at("spec").at("containers");
  const std::string pod_name = pod.at("metadata").at("name").get<std::string>();
  std::string container = request.container;
  if (container.empty()) {
    if (containers.size() > 1) {
      std::string names;
      for (const auto& spec : containers) names += (names.empty() ? "" : " ") + spec.value("name", "");
      return ApiError::bad_request(
          fmt::format("a container name must be specified for pod {}, choose one of: [{}]", pod_name, names));
    }
    container = containers.at(0).value("name", "");
  }
  if (!has_container(pod, container)) {
    return ApiError::bad_request(fmt::format("container {} is not valid for pod {}", container, pod_name));
  }
  const std::string uid = pod.at("metadata").at("uid").get<std::string>();
  const Json* status = status_of(pod, container);
  const int newest = status ? status->value("restartCount", 0) : 0;
  const int attempt = request.previous ? newest - 1 : newest;
  const std::string path = files.log_file(uid, container, attempt);
  auto file = open_file(path, O_RDONLY | O_NOFOLLOW);
  if (!file) {
    return request.previous
               ? ApiError::bad_request(fmt::format(
                     "previous terminated container \"{}\" in pod \"{}\" not found", container, pod_name))
               : ApiError::bad_request(
                     fmt::format("container \"{}\" in pod \"{}\" is waiting to start", container, pod_name));
  }
  auto stream = std::make_shared<LogStream>(
      LogStream{store, connection, uid, container, path, attempt, std::move(file).value(),
                Fd(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)), nullptr, LogReader(request.options.timestamps),
                request.options.limit_bytes});
  if (request.options.tail_lines) {
    const auto all = read_all(stream->file, "log", k_tail_limit);
    if (!all) return ApiError::internal(all.error().message());
    const auto offset = tail_offset(all.value(), *request.options.tail_lines);
    if (lseek(stream->file.get(), static_cast<off_t>(offset), SEEK_SET) < 0)
      return ApiError::internal("seek in log");
  }
  if (request.follow) {
    auto news = store.subscribe();
    if (!news) return ApiError::internal(news.error().message());
    stream->news = std::move(news).value();
    if (!stream->watch()) return ApiError::internal("watch log");
  }
  response.status = 200;
  response.set_chunked_content_provider(
      "text/plain", [stream, follow = request.follow](std::size_t, httplib::DataSink& sink) {
        if (follow) {
          stream->follow(sink);
        } else {
          stream->drain(sink);
        }
        sink.done();
        return true;
      });
  return {};
}

}  // namespace glidepod::podhost
