#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/loop.hpp"

namespace glidepod {

// Tells when something happened in the folders of some files: an editor's or Kubernetes' way of changing a
// file is to put another in its place, by a link of another name even. Whether the files differ is for others
// to see.
class FileWatch {
 public:
  // changed is called from the loop, once for all that happens within half a second.
  static Result<std::unique_ptr<FileWatch>> create(Loop& loop, std::function<void()> changed);
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

  // From now on the folders of these files; one that is not there is an error, the others are watched.
  Result<void> set(const std::vector<std::string>& files);

 private:
  FileWatch(Loop& loop, Fd fd, std::function<void()> changed)
      : loop_(loop), fd_(std::move(fd)), changed_(std::move(changed)) {}
  void drain();

  Loop& loop_;
  Fd fd_;
  std::function<void()> changed_;
  std::map<std::string, int> folders_;
  Loop::TimerId timer_ = 0;
};

}  // namespace glidepod
