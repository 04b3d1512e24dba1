#include "provisioner/pod_feed.hpp"

#include "lib/base/text.hpp"
#include "provisioner/pod_state.hpp"

namespace glidepod::provisioner {

namespace {

// A pod is some 10 kB of JSON.
constexpr int k_page = 250;
constexpr std::size_t k_longest_line = std::size_t{8} << 20;
constexpr Seconds k_resync{900};
// The server ends a watch after this; one that does not is on a dead connection.
constexpr Seconds k_watch{240};
constexpr Seconds k_watch_limit{270};
constexpr Milliseconds k_shortest_watch{1'000};

std::string text_of(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

const Json& metadata_of(const Json& object) {
  static const Json none = Json::object();
  const auto found = object.is_object() ? object.find("metadata") : object.end();
  return object.is_object() && found != object.end() && found->is_object() ? *found : none;
}

void put(std::map<std::string, PodFeed::Entry>& pods, const Json& pod) {
  const auto& metadata = metadata_of(pod);
  pods.insert_or_assign(text_of(metadata, "name"), PodFeed::Entry{read_pod(pod), text_of(metadata, "uid"),
                                                                  text_of(metadata, "resourceVersion")});
}

}  // namespace

struct PodFeed::List {
  Time now;
  std::map<std::string, Entry> pods;
  std::string version;
  bool again = false;  // it is read from its beginning for the second time
  std::function<void(std::string)> done;
};

void PodFeed::read(Time now, std::function<void(std::string)> done) {
  if (watch_ && now - listed_ < k_resync) {
    api_.later([done = std::move(done)] { done({}); });
    return;
  }
  stop_following();
  auto list = std::make_shared<List>();
  list->now = now;
  list->done = std::move(done);
  next_page(list, {});
}

void PodFeed::next_page(const std::shared_ptr<List>& list, const std::string& from) {
  auto path = fmt::format("{}?limit={}&labelSelector={}", path_, k_page, url_encoded(selector_));
  if (!from.empty()) path += "&continue=" + url_encoded(from);
  api_.call({.path = std::move(path)}, [this, list](const ApiAnswer& answer) {
    if (const auto* body = std::get_if<std::string>(&answer)) return read_page(list, *body);
    const auto& failure = std::get<kube::Failure>(answer);
    // The rest of a list is kept for some minutes only.
    if (failure.status == 410 && !std::exchange(list->again, true)) {
      list->pods.clear();
      return next_page(list, {});
    }
    list->done(fmt::format("list of pods: {}", failure.to_string()));
  });
}

void PodFeed::read_page(const std::shared_ptr<List>& list, const std::string& body) {
  std::string more;
  {
    const auto page = Json::parse(body, nullptr, false);
    if (!page.is_object() || !page.contains("items") || !page["items"].is_array())
      return list->done("list of pods: the answer is no list");
    for (const auto& item : page["items"]) put(list->pods, item);
    list->version = text_of(metadata_of(page), "resourceVersion");
    more = text_of(metadata_of(page), "continue");
  }
  if (!more.empty()) return next_page(list, more);
  finish_list(list);
}

void PodFeed::finish_list(const std::shared_ptr<List>& list) {
  pods_ = std::move(list->pods);
  version_ = list->version;
  listed_ = list->now;
  if (mode_ == Mode::followed && !version_.empty()) follow();
  list->done({});
}

void PodFeed::made(const std::string& body) {
  const auto pod = Json::parse(body, nullptr, false);
  const auto name = text_of(metadata_of(pod), "name");
  // What the watch has told already is newer.
  if (!name.empty() && !pods_.contains(name)) put(pods_, pod);
}

void PodFeed::follow() {
  line_.clear();
  began_ = std::chrono::steady_clock::now();
  auto request = client_.request(
      "GET",
      fmt::format(
          "{}?watch=true&allowWatchBookmarks=true&timeoutSeconds={}&labelSelector={}&resourceVersion={}",
          path_, k_watch.count(), url_encoded(selector_), version_));
  request.timeout = k_watch_limit;
  watch_ = client_.http().start(std::move(request),
                                {[this](std::string_view data) { take(data); },
                                 [this](const Result<kube::HttpResponse>& end) {
                                   const auto lasted = std::chrono::steady_clock::now() - began_;
                                   watch_.reset();
                                   // Servers close watches now and then; what came so far
                                   // is whole. All else the next list mends.
                                   if (end && end->status == 200 && lasted >= k_shortest_watch) follow();
                                 }});
}

void PodFeed::stop_following() {
  watch_.reset();
  line_.clear();
}

void PodFeed::take(std::string_view data) {
  for (auto end = data.find('\n'); end != std::string_view::npos; end = data.find('\n')) {
    line_ += data.substr(0, end);
    data.remove_prefix(end + 1);
    const std::string line = std::exchange(line_, {});
    if (!line.empty()) event(line);
    if (!watch_) return;
  }
  line_ += data;
  if (line_.size() > k_longest_line) stop_following();
}

void PodFeed::event(const std::string& line) {
  const auto event = Json::parse(line, nullptr, false);
  const auto type = text_of(event, "type");
  const auto found = event.is_object() ? event.find("object") : event.end();
  // An error, mostly that the version is too old by now.
  if (!event.is_object() || found == event.end() || type == "ERROR" || type.empty()) return stop_following();
  const auto& metadata = metadata_of(*found);
  if (const auto version = text_of(metadata, "resourceVersion"); !version.empty()) version_ = version;
  if (type == "DELETED")
    pods_.erase(text_of(metadata, "name"));
  else if (type != "BOOKMARK")
    put(pods_, *found);
}

}  // namespace glidepod::provisioner
