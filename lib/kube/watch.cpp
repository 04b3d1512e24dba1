#include "lib/kube/watch.hpp"

#include <utility>

#include "lib/kube/watch_event.hpp"

namespace glidepod::kube {
namespace {

// A stream that has lived for so long was well.
constexpr std::chrono::seconds k_well{30};
// For no longer the collection is taken for what it was because the server wants to be left alone.
constexpr std::chrono::seconds k_longest_gap{60};

Failure nonsense(std::string what) {
  return {Failure::Kind::nonsense, 200, {}, std::move(what), {}};
}

}  // namespace

Watch::Watch(Client& client, Source source, Handlers handlers)
    : client_(client), source_(std::move(source)), handlers_(std::move(handlers)) {
  stream();
}

void Watch::stream() {
  line_.clear();
  events_ = 0;
  began_ = std::chrono::steady_clock::now();
  auto path = fmt::format("{}?watch=true&allowWatchBookmarks=true&{}&resourceVersion={}", source_.path,
                          source_.selector, source_.version);
  if (source_.stream_limit.count() > 0)
    path += fmt::format("&timeoutSeconds={}", source_.stream_limit.count());
  auto request = client_.request("GET", path);
  if (source_.stream_limit.count() > 0) request.timeout = source_.stream_limit + source_.late;
  call_ = client_.transport().start(std::move(request),
                                    {[this](std::string_view data) { take(data); },
                                     [this](const Result<http::Response>& end) { ended(end); }});
}

void Watch::ended(const Result<http::Response>& end) {
  if (!end) return lost(Failure::of(end.error()));
  if (const auto failure = failure_in(*end)) return lost(*failure);
  if (events_ == 0 && std::chrono::steady_clock::now() - began_ < source_.shortest)
    return lost({Failure::Kind::transport, 0, {}, "the watch was closed", {}});
  failures_ = 0;
  stream();
}

void Watch::take(std::string_view data) {
  const auto alive = alive_;
  for (auto end = data.find('\n'); end != std::string_view::npos; end = data.find('\n')) {
    line_ += data.substr(0, end);
    data.remove_prefix(end + 1);
    const std::string line = std::exchange(line_, {});
    if (!line.empty()) event(line);
    if (!*alive || !call_) return;
  }
  line_ += data;
  if (line_.size() > source_.longest_line) lost(nonsense("an event without end"));
}

void Watch::event(const std::string& line) {
  const auto event = parse_watch_event(line);
  if (!event) return lost(nonsense(event.error().message()));
  if (event->type == WatchEvent::Type::error) {
    const auto status = status_from(event->object);
    if (!status) return lost(nonsense(status.error().message()));
    return lost({Failure::Kind::status, status->code, status->reason, status->message, {}});
  }
  ++events_;
  if (!event->version.empty()) source_.version = event->version;
  if (event->type == WatchEvent::Type::bookmark) return;
  // A copy, since the handler may destroy this object.
  const auto handler = event->type == WatchEvent::Type::deleted ? handlers_.deleted : handlers_.changed;
  if (handler) handler(event->object);
}

bool Watch::passes(const Failure& failure) const {
  return failure.kind != Failure::Kind::nonsense && failure.retriable() && failures_ < source_.resumptions &&
         failure.retry_after.value_or(std::chrono::seconds(0)) <= k_longest_gap;
}

// To read the whole collection anew costs the server most when it has least.
void Watch::lost(const Failure& failure) {
  call_.reset();
  if (std::chrono::steady_clock::now() - began_ >= k_well) failures_ = 0;
  if (passes(failure)) {
    again_ = client_.loop().after(http::backoff(++failures_, client_.transport().random(), failure),
                                  [this] { stream(); });
    return;
  }
  const auto handler = handlers_.lost;
  handler(failure);  // may destroy this
}

}  // namespace glidepod::kube
