#include "pilot-agent/pod_client.hpp"

#include <unistd.h>

#include "lib/base/file.hpp"
#include "lib/base/log.hpp"
#include "lib/base/text.hpp"

namespace glidepod::agent {
namespace {

constexpr std::chrono::hours k_first_get_deadline{24};
constexpr Milliseconds k_first_get_pause{30'000};
constexpr std::chrono::seconds k_fail_time{20};

Result<kube::PodName> own_name(const Settings& settings) {
  kube::PodName pod{settings.pod_namespace, settings.pod_name};
  if (pod.name.empty()) {
    char name[256] = {};
    if (::gethostname(name, sizeof name - 1) != 0) return Error::system("host name");
    pod.name = name;
  }
  if (pod.name_space.empty())
    pod.name_space = trim(TRY(read_file(settings.service_account + "/namespace", 4096)));
  return pod;
}

}  // namespace

Result<std::unique_ptr<PodClient>> PodClient::create(Loop& loop, const Settings& settings, Core& core,
                                                     std::function<void()> changed) {
  std::unique_ptr<PodClient> pod(new PodClient(loop, core, std::move(changed)));
  pod->name_ = TRY(own_name(settings));
  const kube::Endpoint endpoint = TRY(kube::endpoint_in_pod(settings.service_account, environ));
  spdlog::info("event=api pod={}/{} at={}", pod->name_.name_space, pod->name_.name,
               endpoint.unix_socket.empty() ? endpoint.url : endpoint.unix_socket);
  pod->api_ = TRY(kube::Client::create(loop, endpoint));
  pod->images_ = std::make_unique<kube::PodImages>(*pod->api_, pod->name_);
  return pod;
}

void PodClient::get_first(const std::function<void(const kube::Pod&)>& handler) {
  first_get_ =
      api_->get(name_, Loop::now() + k_first_get_deadline, [this, handler](const Result<kube::Pod>& pod) {
        const auto ended = std::move(first_get_);
        if (pod) {
          images_->saw(*pod);
          return handler(*pod);
        }
        spdlog::error("event=api_failed what=\"get this pod\" reason={}", quoted(pod.error().message()));
        again_ = loop_.after(k_first_get_pause, [this, handler] { get_first(handler); });
      });
}

void PodClient::fail(std::function<void()> done) {
  failing_ = api_->fail_pod(name_, Loop::now() + k_fail_time,
                            [done = std::move(done)](const Result<kube::Pod>& pod) {
                              if (!pod)
                                spdlog::warn("event=pod_not_failed reason={}", quoted(pod.error().message()));
                              done();
                            });
}

void PodClient::run(const Patch& action) {
  auto& patch = patches_[action.container];
  patch = images_->change({action.container, action.image, action.once}, action.deadline,
                          [this, &patch, attempt = action.attempt](const Result<kube::Pod>& pod) {
                            patch.reset();
                            if (pod) version_ = pod->resource_version;
                            core_.on_patched(attempt, pod, Loop::now());
                            changed_();
                          });
}

void PodClient::run(const Resize& action) {
  resize_ = api_->resize(name_, action.changes, action.deadline,
                         [this, attempt = action.attempt](const Result<kube::Pod>& pod) {
                           resize_.reset();
                           if (pod) {
                             version_ = pod->resource_version;
                             images_->saw(*pod);
                           }
                           core_.on_resized(attempt, pod, Loop::now());
                           changed_();
                         });
}

void PodClient::run(const Want& action) {
  want_ = api_->annotate(name_, kube::k_wanted_images, action.text, action.deadline,
                         [this](const Result<kube::Pod>& pod) {
                           want_.reset();
                           core_.on_wanted(pod ? Result<void>() : pod.error(), Loop::now());
                           changed_();
                         });
}

void PodClient::adjust_watch() {
  if (!core_.watching()) {
    watch_.reset();
    version_.clear();
  } else if (!watch_) {
    watch_ = api_->watch(name_, std::exchange(version_, {}),
                         {[this](const kube::Pod& pod) {
                            images_->saw(pod);
                            core_.on_pod(pod, Loop::now());
                            changed_();
                          },
                          [] { spdlog::warn("event=pod_deleted"); },
                          [](const kube::Failure& failure) {
                            spdlog::info("event=watch_interrupted reason={}", quoted(failure.to_string()));
                          }});
  }
}

}  // namespace glidepod::agent
