#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/fd.hpp"
#include "lib/base/result.hpp"
#include "store/layer.hpp"

namespace glidepod::store {

// A blob of an OCI image.
struct Blob {
  std::string digest;
  std::uint64_t size = 0;
};

// Where an image's blobs go.
struct Blobs {
  virtual ~Blobs() = default;
  // The next bytes of a layer, whose digest is not known yet.
  virtual Result<void> layer(std::string_view bytes) = 0;
  // That one is whole; the next bytes are another one's.
  virtual Result<void> layer_ended(const Blob& layer) = 0;
  // That was the last one, and nothing is wrong with them. unpacked: bytes of all their tars.
  virtual Result<void> layers_ended([[maybe_unused]] std::uint64_t unpacked) { return {}; }
  // A whole small blob: the configuration, then the manifest.
  virtual Result<void> put(const Blob& blob, std::string_view bytes) = 0;
};

struct MakeOptions {
  std::vector<std::string> reader = {"/proc/self/exe", "layer"};  // reads the image, as a process of its own
  std::chrono::seconds time{3600};
};

struct Made {
  Blob manifest;
  Layer layer;
};

// Makes an OCI image of an image file. A process of its own, which can do nothing else, reads the file. The
// file must not change meanwhile. An Error with a BadImage is the user's to mend.
Result<Made> make_image(const Fd& file, Blobs& blobs, const MakeOptions& options);

// The configuration and the manifest, as JSON.
std::string image_config(const Layer& layer, std::string_view machine_architecture);
std::string image_manifest(const Blob& config, const std::vector<Blob>& layers);

inline constexpr const char* k_manifest_type = "application/vnd.oci.image.manifest.v1+json";
inline constexpr const char* k_config_type = "application/vnd.oci.image.config.v1+json";
inline constexpr const char* k_layer_type = "application/vnd.oci.image.layer.v1.tar+zstd";

}  // namespace glidepod::store
