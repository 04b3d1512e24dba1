#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.hpp"
#include "lib/registry/repository.hpp"

namespace glidepod::store {

// A layer that goes there while it is made. One that is not committed leaves nothing there.
struct LayerStream {
  virtual ~LayerStream() = default;
  // The next bytes. An Error: it takes no more. What gets lost later commit() tells.
  virtual Result<void> add(std::string_view bytes) = 0;
  // Those were all. What takes the time for them need not be waited for before commit().
  virtual void end() = 0;
  virtual Result<void> commit(const std::string& digest) = 0;
};

// Where images are put once they are made. Safe from any thread; each call blocks.
struct Shelf {
  virtual ~Shelf() = default;
  // image: REPOSITORY@DIGEST.
  virtual Result<bool> has(const std::string& image) = 0;
  // The image that was put there under this tag, if that can be told.
  virtual Result<std::optional<std::string>> find(const std::string& tag) = 0;
  // Whether images take the room of their content there, not of their layers.
  virtual bool unpacks() const { return false; }
  // For one layer of an image that will be put there, where that spares time; else nothing.
  virtual std::unique_ptr<LayerStream> stream() { return nullptr; }
  // layout: a folder in the form of an OCI image layout; layers of which a stream() was committed may be
  // missing. tag: what the image is called besides its digest.
  virtual Result<void> put(const std::string& layout, const std::string& tag) = 0;
  // The tags that images were put there under, as far as that can be told.
  virtual Result<std::vector<std::string>> tags() = 0;
  // Removes an image that was put there under this tag. That it is gone already is no Error.
  virtual Result<void> remove(const std::string& image, const std::string& tag) = 0;
};

// The images of one podman.
class PodmanShelf : public Shelf {
 public:
  // command: podman with its global options.
  PodmanShelf(std::vector<std::string> command, std::string repository)
      : command_(std::move(command)), repository_(std::move(repository)) {}
  Result<bool> has(const std::string& image) override;
  Result<std::optional<std::string>> find(const std::string&) override {
    return std::optional<std::string>();  // it gives no digest of a name that cannot be of another image
  }
  bool unpacks() const override { return true; }
  Result<void> put(const std::string& layout, const std::string& tag) override;
  Result<std::vector<std::string>> tags() override { return std::vector<std::string>(); }
  Result<void> remove(const std::string& image, const std::string& tag) override;

 private:
  struct Said {
    int code = 0;
    std::string out, err;
  };
  Result<Said> podman(const std::vector<std::string>& arguments, const std::string& folder = "/") const;
  std::vector<std::string> command_;
  std::string repository_;
};

// One repository of a registry, into which nobody else writes.
class RegistryShelf : public Shelf {
 public:
  // longest_stall: for a registry to take more of a stream, and to answer at its end.
  RegistryShelf(std::unique_ptr<registry::Repository> registry, std::string repository,
                Milliseconds longest_stall = Milliseconds(10'000))
      : registry_(std::move(registry)), repository_(std::move(repository)), longest_stall_(longest_stall) {}
  Result<bool> has(const std::string& image) override;
  Result<std::optional<std::string>> find(const std::string& tag) override;
  std::unique_ptr<LayerStream> stream() override;
  Result<void> put(const std::string& layout, const std::string& tag) override;
  Result<std::vector<std::string>> tags() override;
  Result<void> remove(const std::string& image, const std::string& tag) override;

 private:
  std::unique_ptr<registry::Repository> registry_;
  std::string repository_;
  Milliseconds longest_stall_;
};

}  // namespace glidepod::store
