#pragma once

#include <string>

#include "store/make.hpp"

namespace glidepod::store {

// A folder in the form of an OCI image layout, which podman, skopeo and others read.
class Layout : public Blobs {
 public:
  // The folder is made if it is missing. name is what a program that loads the image calls it; may be empty.
  Layout(std::string folder, std::string name) : folder_(std::move(folder)), name_(std::move(name)) {}

  Result<void> prepare();
  Result<void> layer(std::string_view bytes) override;
  Result<void> layer_ended(const Blob& layer) override;
  Result<void> put(const Blob& blob, std::string_view bytes) override;
  // Makes the manifest the folder's image. Until then the folder has none.
  Result<void> finish(const Blob& manifest);

 private:
  std::string path_of(const Blob& blob) const;
  std::string folder_, name_;
  Fd layer_;
};

}  // namespace glidepod::store
