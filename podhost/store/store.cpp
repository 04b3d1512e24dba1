#include "podhost/store/store.hpp"

#include <sys/eventfd.h>

#include <algorithm>

#include "lib/base/log.hpp"

namespace glidepod::podhost {
namespace {
constexpr std::size_t k_history = 1000;

std::string text_at(const Json& pod, const char* key) {
  return pod.at("metadata").at(key).get<std::string>();
}

bool deletes(const Json& old_pod, const Json& new_pod) {
  const auto when = [](const Json& pod) { return pod.at("metadata").value("deletionTimestamp", Json()); };
  return when(new_pod) != when(old_pod);
}
}  // namespace

Store::Store(PodFiles& files, std::int64_t first_version, std::function<void(const std::string&)> changed)
    : files_(files), changed_(std::move(changed)), version_(first_version), forgotten_(first_version) {}

void Store::restore(Json pod) {
  const std::lock_guard lock(mutex_);
  const std::string uid = text_at(pod, "uid");
  pod["metadata"]["resourceVersion"] = std::to_string(version_);
  pods_[uid] = std::make_shared<const Json>(std::move(pod));
}

PodPtr Store::find_locked(const std::string& name_space, const std::string& name) const {
  for (const auto& [uid, pod] : pods_) {
    if (text_at(*pod, "name") == name && text_at(*pod, "namespace") == name_space) return pod;
  }
  return nullptr;
}

PodPtr Store::publish(Event::Type type, Json pod) {
  const std::lock_guard lock(mutex_);
  ++version_;
  pod["metadata"]["resourceVersion"] = std::to_string(version_);
  auto object = std::make_shared<const Json>(std::move(pod));
  const std::string uid = text_at(*object, "uid");
  PodPtr previous = pods_.contains(uid) ? pods_.at(uid) : nullptr;
  if (type == Event::Type::deleted) {
    pods_.erase(uid);
  } else {
    pods_[uid] = object;
  }
  history_.push_back({type, object, std::move(previous), version_});
  while (history_.size() > k_history) {
    forgotten_ = history_.front().version;
    history_.pop_front();
  }
  for (const int fd : subscribers_) eventfd_write(fd, 1);
  return object;
}

Result<PodPtr> Store::create(Json pod) {
  const std::string name_space = text_at(pod, "namespace");
  const std::string name = text_at(pod, "name");
  const std::string uid = text_at(pod, "uid");
  PodPtr created;
  {
    const std::lock_guard writing(writing_);
    {
      const std::lock_guard lock(mutex_);
      if (find_locked(name_space, name)) return kube::ApiError::pod_exists(name);
    }
    if (const auto saved = files_.save_spec(pod); !saved) {
      files_.erase(uid);
      return saved.error();
    }
    created = publish(Event::Type::added, std::move(pod));
  }
  changed_(uid);
  return created;
}

Result<PodPtr> Store::get(const std::string& name_space, const std::string& name) const {
  const std::lock_guard lock(mutex_);
  if (auto pod = find_locked(name_space, name)) return pod;
  return kube::ApiError::pod_not_found(name);
}

PodPtr Store::find(const std::string& uid) const {
  const std::lock_guard lock(mutex_);
  const auto found = pods_.find(uid);
  return found == pods_.end() ? nullptr : found->second;
}

Store::List Store::list() const {
  const std::lock_guard lock(mutex_);
  List result;
  for (const auto& [uid, pod] : pods_) result.pods.push_back(pod);
  result.version = version_;
  std::ranges::sort(result.pods, {}, [](const PodPtr& pod) {
    return std::pair(text_at(*pod, "namespace"), text_at(*pod, "name"));
  });
  return result;
}

Result<PodPtr> Store::update(const std::string& name_space, const std::string& name, const Change& change) {
  std::string uid;
  PodPtr updated;
  {
    const std::lock_guard writing(writing_);
    auto old_pod = get(name_space, name);
    if (!old_pod) return old_pod.error();
    uid = text_at(**old_pod, "uid");
    auto new_pod = change(**old_pod);
    if (!new_pod) return new_pod.error();
    if (*new_pod == **old_pod) return old_pod;
    if (const auto saved = files_.save_spec(*new_pod); !saved) {
      // A full disk is freed by deletions.
      if (!deletes(**old_pod, *new_pod)) return saved.error();
      spdlog::warn("event=deletion_not_saved uid={} error={}", uid,
                   glidepod::quoted(saved.error().message()));
    }
    updated = publish(Event::Type::modified, std::move(*new_pod));
  }
  changed_(uid);
  return updated;
}

bool Store::set_status(const std::string& uid, Json status) {
  const std::lock_guard writing(writing_);
  const PodPtr old_pod = find(uid);
  if (!old_pod) return true;
  const bool same = old_pod->value("status", Json()) == status;
  if (same && !unsaved_.contains(uid)) return true;
  const auto saved = files_.save_status(uid, status);
  if (saved) {
    unsaved_.erase(uid);
  } else if (unsaved_.insert(uid).second) {
    spdlog::warn("event=status_not_saved uid={} error={}", uid, glidepod::quoted(saved.error().message()));
  }
  if (!same) {
    Json pod = *old_pod;
    pod["status"] = std::move(status);
    publish(Event::Type::modified, std::move(pod));
  }
  return saved.ok();
}

void Store::remove(const std::string& uid) {
  const std::lock_guard writing(writing_);
  const PodPtr pod = find(uid);
  files_.erase(uid);
  unsaved_.erase(uid);
  if (pod) publish(Event::Type::deleted, *pod);
}

std::optional<std::vector<Event>> Store::since(std::int64_t version) const {
  const std::lock_guard lock(mutex_);
  if (version < forgotten_) return std::nullopt;
  const auto first = std::ranges::upper_bound(history_, version, {}, &Event::version);
  return std::vector<Event>(first, history_.end());
}

std::int64_t Store::version() const {
  const std::lock_guard lock(mutex_);
  return version_;
}

Result<std::unique_ptr<Store::Subscription>> Store::subscribe() {
  Fd fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd) return Error::system("eventfd");
  const std::lock_guard lock(mutex_);
  subscribers_.push_back(fd.get());
  return std::make_unique<Subscription>(this, std::move(fd));
}

Store::Subscription::~Subscription() {
  const std::lock_guard lock(store_->mutex_);
  std::erase(store_->subscribers_, fd_.get());
}

}  // namespace glidepod::podhost
