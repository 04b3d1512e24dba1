#include "lib/base/file_watch.hpp"

#include <sys/inotify.h>
#include <unistd.h>

#include <filesystem>
#include <set>

namespace glidepod {

namespace {

// What is written takes several steps, as does what is replaced.
constexpr Milliseconds k_settle{500};

}  // namespace

Result<std::unique_ptr<FileWatch>> FileWatch::create(Loop& loop, std::function<void()> changed) {
  Fd fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!fd) return Error::system("inotify");
  const int number = fd.get();
  std::unique_ptr<FileWatch> watch(new FileWatch(loop, std::move(fd), std::move(changed)));
  TRY(loop.watch(number, EPOLLIN, [self = watch.get()](std::uint32_t) { self->drain(); }));
  return watch;
}

FileWatch::~FileWatch() {
  if (timer_ != 0) loop_.cancel(timer_);
  loop_.forget(fd_.get());
}

Result<void> FileWatch::set(const std::vector<std::string>& files) {
  std::set<std::string> wanted;
  for (const auto& file : files) {
    const auto folder = std::filesystem::path(file).parent_path().string();
    wanted.insert(folder.empty() ? "." : folder);
  }
  for (auto entry = folders_.begin(); entry != folders_.end();) {
    const bool stays = wanted.erase(entry->first) > 0;
    if (!stays) ::inotify_rm_watch(fd_.get(), entry->second);
    entry = stays ? std::next(entry) : folders_.erase(entry);
  }
  Result<void> result;
  for (const auto& folder : wanted) {
    const int watch = ::inotify_add_watch(fd_.get(), folder.c_str(),
                                          IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_DELETE | IN_ONLYDIR);
    if (watch < 0)
      result = Error::system("watch {}", folder);
    else
      folders_[folder] = watch;
  }
  return result;
}

void FileWatch::drain() {
  alignas(inotify_event) char buffer[4096];
  while (::read(fd_.get(), buffer, sizeof buffer) > 0) {
  }
  if (timer_ != 0) return;
  timer_ = loop_.after(k_settle, [this] {
    timer_ = 0;
    changed_();
  });
}

}  // namespace glidepod
