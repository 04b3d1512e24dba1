#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lib/base/fd.hpp"
#include "lib/base/result.hpp"

namespace glidepod::store {

// Where images are put once they are made.
struct Shelf {
  virtual ~Shelf() = default;
  virtual Result<bool> has(const std::string& image) = 0;
  // layout: a folder in the form of an OCI image layout. tag: what the image is called besides its digest.
  virtual Result<void> put(const std::string& layout, const std::string& tag) = 0;
};

// The images of one podman.
class PodmanShelf : public Shelf {
 public:
  // command: podman with its global options.
  PodmanShelf(std::vector<std::string> command, std::string repository)
      : command_(std::move(command)), repository_(std::move(repository)) {}
  Result<bool> has(const std::string& image) override;
  Result<void> put(const std::string& layout, const std::string& tag) override;

 private:
  struct Said {
    int code = 0;
    std::string out, err;
  };
  Result<Said> podman(const std::vector<std::string>& arguments, const std::string& folder = "/") const;
  std::vector<std::string> command_;
  std::string repository_;
};

// Knows images by the content of the files that they were made of. Safe from any thread; each call blocks.
class Keeper {
 public:
  struct Settings {
    std::string folder;      // what it knows, and files that are being read; only its own user may enter
    std::string repository;  // where the images are
    std::vector<std::string> reader = {"/proc/self/exe", "layer"};
  };
  Keeper(Settings settings, Shelf& shelf) : settings_(std::move(settings)), shelf_(shelf) {}

  // Makes the folder, and removes what an earlier one has left in it.
  Result<void> prepare();
  // The image of a file's content, as a pod names it: REPOSITORY@DIGEST. The file may change while it is
  // read: what counts is a copy. The same content is converted once, however many ask for it. An Error with a
  // BadImage is the user's to mend.
  Result<std::string> image_of(const Fd& file);

 private:
  struct Copy {
    Fd file;
    std::string key;  // 64 hexadecimal digits
  };
  Result<Copy> copy(const Fd& file) const;
  Result<std::string> make(const Copy& copy);
  std::string known(const std::string& key) const { return settings_.folder + "/known/" + key; }
  std::shared_ptr<std::mutex> turn(const std::string& key);

  Settings settings_;
  Shelf& shelf_;
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<std::mutex>> turns_;  // by key
};

}  // namespace glidepod::store
