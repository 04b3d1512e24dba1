// What many pilots ask of an API server, by the client that they have. A program of tests/bench/fleet.
//
//   fleet URL CA PILOT_TOKEN NODE_TOKEN NAMESPACE make COUNT TEMPLATE    pods fleet-0 ... on a node that is
//   none fleet URL CA PILOT_TOKEN NODE_TOKEN NAMESPACE switch COUNT AT_ONCE   each changes the image of its
//   first payload
//                                                                        container, so many at a time
//
// A pilot does for a switch what pilot-agent does: a PATCH, then a watch of its own pod until the pod's
// status shows the image. The status is written as a kubelet writes it, by the other token: the old container
// has ended, the new one runs. Prints "TIMES SECONDS MEDIAN_MS P99_MS", from a pilot's PATCH to the status
// that ends its watch.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>

#include "lib/base/file.hpp"
#include "lib/base/json.hpp"
#include "lib/base/loop.hpp"
#include "lib/kube/client.hpp"
#include "lib/kube/pod_images.hpp"

using namespace glidepod;
using Json = nlohmann::json;
using std::chrono::duration;

namespace {

constexpr std::chrono::seconds k_patience{120};

struct World {
  Loop& loop;
  kube::Endpoint pilots, node;
  std::string name_space;
  int count = 0, at_once = 0;
};

[[noreturn]] void fail(const std::string& why) {
  fmt::print(stderr, "fleet: {}\n", why);
  std::exit(1);
}

std::unique_ptr<kube::Client> client(Loop& loop, const kube::Endpoint& endpoint) {
  auto made = kube::Client::create(loop, endpoint);
  if (!made) fail(made.error().message());
  return *std::move(made);
}

std::string pods(const World& world) {
  return fmt::format("/api/v1/namespaces/{}/pods", world.name_space);
}

// Pods that the node has "started": bound to it as they are made, and their status written.
class Maker {
 public:
  Maker(World& world, Json pod) : world_(world), node_(client(world.loop, world.node)), pod_(std::move(pod)) {
    for (int i = 0; i < 20; ++i) next();
  }

 private:
  void next() {
    if (begun_ == world_.count) return;
    const auto name = fmt::format("fleet-{}", begun_++);
    pod_["metadata"]["name"] = name;
    calls_.push_back(node_->call({.method = "POST", .path = pods(world_), .body = json_text(pod_)},
                                 [this](const Result<std::string>& answer) {
                                   if (!answer) fail(answer.error().message());
                                   if (++done_ == world_.count) return world_.loop.stop();
                                   if (done_ % 500 == 0) fmt::print(stderr, "fleet: {} pods\n", done_);
                                   next();
                                 }));
  }

  World& world_;
  std::unique_ptr<kube::Client> node_;
  Json pod_;
  std::deque<std::unique_ptr<http::Exchange>> calls_;
  int begun_ = 0, done_ = 0;
};

class Storm;

// One pilot, with the connections that it has by itself.
class Pilot {
 public:
  Pilot(World& world, Storm& storm, kube::Client& node, int number)
      : world_(world),
        storm_(storm),
        node_(node),
        api_(client(world.loop, world.pilots)),
        pod_{world.name_space, fmt::format("fleet-{}", number)},
        images_(*api_, pod_) {}
  // It knows its pod, as an agent does from its start.
  void know(const kube::Pod& pod) { images_.saw(pod); }
  const std::string& name() const { return pod_.name; }
  void begin();
  void write_status(bool runs);
  void changed(const kube::Pod& pod);

 private:
  World& world_;
  Storm& storm_;
  kube::Client& node_;
  std::unique_ptr<kube::Client> api_;
  kube::PodName pod_;
  kube::PodImages images_;
  std::string wanted_, digest_;
  SteadyTime began_;
  std::unique_ptr<http::Operation> patch_, watch_, over_;
  std::unique_ptr<http::Exchange> status_;
};

// All of them, each once, so many at a time.
class Storm {
 public:
  explicit Storm(World& world) : world_(world), node_(client(world.loop, world.node)) {
    for (int i = 0; i < world.count; ++i) pilots_.push_back(std::make_unique<Pilot>(world, *this, *node_, i));
    // By one list, which is none of theirs.
    list_ = node_->call(
        {.path = pods(world) + "?labelSelector=bench%3Dfleet", .longest_answer = std::size_t{256} << 20},
        [this](const Result<std::string>& answer) { known(answer); });
  }

  void done(duration<double> took) {
    times_.push_back(took.count() * 1000);
    if (times_.size() == pilots_.size()) return world_.loop.stop();
    next();
  }
  void tell() {
    const duration<double> took = Loop::now() - began_;
    std::ranges::sort(times_);
    fmt::print("{} {:.2f} {:.1f} {:.1f}\n", times_.size(), took.count(), times_[times_.size() / 2],
               times_[times_.size() * 99 / 100]);
  }

 private:
  void known(const Result<std::string>& answer) {
    if (!answer) fail(answer.error().message());
    std::map<std::string, kube::Pod> all;
    const Json list = json_from(*answer);
    for (const auto& item : list.at("items")) {
      auto pod = kube::pod_from(item);
      if (!pod) fail(pod.error().message());
      const auto name = pod->name;
      all[name] = *std::move(pod);
    }
    for (auto& pilot : pilots_) pilot->know(all.at(pilot->name()));
    began_ = Loop::now();
    for (int i = 0; i < world_.at_once; ++i) next();
  }
  void next() {
    if (begun_ < pilots_.size()) pilots_[begun_++]->begin();
  }

  World& world_;
  std::unique_ptr<kube::Client> node_;
  std::vector<std::unique_ptr<Pilot>> pilots_;
  std::unique_ptr<http::Exchange> list_;
  std::size_t begun_ = 0;
  std::vector<double> times_;
  SteadyTime began_;
};

void Pilot::begin() {
  began_ = Loop::now();
  const auto nonce = std::chrono::system_clock::now().time_since_epoch().count();
  digest_ = fmt::format("sha256:{:064x}", nonce);
  wanted_ = fmt::format("registry.example.org/some/image:glidepod-{:x}@{}", nonce, digest_);
  patch_ = images_.change({"payload-0", wanted_, true}, Loop::now() + k_patience,
                          [this](const Result<kube::Pod>& answer) {
                            if (!answer) fail(answer.error().message());
                            watch_ = api_->watch(pod_, answer->resource_version,
                                                 {[this](const kube::Pod& pod) { changed(pod); }, [] {},
                                                  [](const kube::Failure& why) { fail(why.to_string()); }});
                            write_status(false);
                          });
}

// As the kubelet does: once when the container has ended, once when it runs again.
void Pilot::write_status(bool runs) {
  Json state = {{"name", "payload-0"}, {"ready", runs}, {"restartCount", 1}, {"image", wanted_}};
  state["imageID"] = "registry.example.org/some/image@" + digest_;
  state["containerID"] = "containerd://" + digest_.substr(7);
  if (runs)
    state["state"]["running"]["startedAt"] = "2026-01-01T00:00:00Z";
  else
    state["state"]["terminated"] = {{"exitCode", 143}, {"reason", "Error"}};
  Json body;
  body["status"]["containerStatuses"] = Json::array({state});
  status_ = node_.call({.method = "PATCH",
                        .path = fmt::format("{}/{}/status", pods(world_), pod_.name),
                        .body = json_text(body),
                        .content_type = "application/strategic-merge-patch+json"},
                       [this, runs](const Result<std::string>& answer) {
                         if (!answer) fail(answer.error().message());
                         if (!runs) world_.loop.after(Milliseconds(0), [this] { write_status(true); });
                       });
}

void Pilot::changed(const kube::Pod& pod) {
  const auto* status = pod.status("payload-0");
  if (status == nullptr || status->state != kube::ContainerStatus::State::running || status->image != wanted_)
    return;
  over_ = std::move(watch_);  // this is called from inside it
  world_.loop.after(Milliseconds(0), [this] { over_.reset(); });
  storm_.done(Loop::now() - began_);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() != 8) fail("see the head of tests/bench/fleet.cpp");
  auto loop = Loop::create();
  if (!loop) fail(loop.error().message());
  World world{*loop, {words[0], "", words[2], words[1]}, {words[0], "", words[3], words[1]}, words[4]};
  world.count = std::stoi(words[6]);
  const auto end = [&](const Result<void>& result) {
    if (!result) fail(result.error().message());
  };
  if (words[5] == "make") {
    const auto text = read_file(words[7]);
    if (!text) fail(text.error().message());
    Maker maker(world, json_from(*text));
    end(loop->run());
  } else {
    world.at_once = std::stoi(words[7]);
    Storm storm(world);
    end(loop->run());
    storm.tell();
  }
}
